from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.corpus import Corpus
from cradle_lib.errors import ScoringError
from cradle_lib.labels import BITS
from cradle_lib.scoring.confusion import pair
from cradle_lib.scoring.counts import Masks
from cradle_lib.scoring.error_cases import pick_cases
from cradle_lib.scoring.error_types import ErrorKind, kind_of

MakeCorpus = Callable[[Sequence[Sequence[tuple[str, int]]]], Corpus]

AO, AP = BITS["alert_ongoing"], BITS["alert_past"]
SHO, SHP = BITS["confirm_SH_ongoing"], BITS["confirm_SH_past"]
DVO, DVP = BITS["confirm_DV_ongoing"], BITS["confirm_DV_past"]
SIP = BITS["confirm_SI_passive_ongoing"]

mask = st.one_of(st.sampled_from([0, 0, 0, AO, SHO, SHP, AO | DVO]), st.integers(0, 65535))
pairs = st.lists(st.tuples(mask, mask), min_size=1, max_size=25)


def u16(*values: int) -> Masks:
    return np.array(values, dtype=np.uint16)


def erring_turns(corpus: Corpus, masks: Masks, kind: ErrorKind) -> set[int]:
    """Turns with an error of this kind, read off the two labels of each pair."""
    cells = enumerate(zip(corpus.gold.tolist(), masks.tolist(), strict=True))
    return {turn for turn, both in cells for cell in pair(*both) if kind_of(*cell) is kind}


def runs(seed: int, turns: int, models: int) -> list[Masks]:
    generator = np.random.default_rng(seed)
    choices = u16(0, 0, 0, AO, AP, SHO, SHP, DVO, AO | SHO)
    return [generator.choice(choices, size=turns) for _ in range(models + 1)]


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 3))
def test_cases_obey_the_stated_rule(
    make_corpus: MakeCorpus, seed: int, models: int, per_kind: int
) -> None:
    gold, *tags = runs(seed, 60, models)
    dialogues = [[("U", int(m)) for m in gold[i : i + 5]] for i in range(0, 60, 5)]
    corpus = make_corpus(dialogues)
    named = {f"m{i}": masks for i, masks in enumerate(tags)}
    cases = pick_cases(corpus, named, per_kind=per_kind, seed=seed)
    assert [c.kind for c in cases] == sorted((c.kind for c in cases), key=list(ErrorKind).index)
    assert len({case.dialogue.id for case in cases}) == len(cases)
    used: set[int] = set()
    for kind in ErrorKind:
        erring = Counter(turn for masks in tags for turn in erring_turns(corpus, masks, kind))
        chosen = [case for case in cases if case.kind is kind]
        for case in chosen:
            open_turns = [t for t in erring if t // 5 not in used]
            assert len(case.erring) == erring[case.position]
            assert erring[case.position] == max(erring[t] for t in open_turns)
            assert case.turn.mask == gold[case.position]
            assert case.tagged == {name: int(m[case.position]) for name, m in named.items()}
            assert case.turn in case.dialogue.turns
            used.add(case.position // 5)
        assert len(chosen) == per_kind or all(t // 5 in used for t in erring)


def test_the_seed_decides_between_ties_and_nothing_else_does(make_corpus: MakeCorpus) -> None:
    corpus = make_corpus([[("L", 0), ("U", SHO)] for _ in range(30)])
    tags = {"none": np.zeros(30, dtype=np.uint16)}
    picked = [pick_cases(corpus, tags, seed=seed)[0].position for seed in (0, 0, 1, 2, 3)]
    assert picked[0] == picked[1]
    assert len(set(picked)) > 1


def test_models_must_have_tagged_the_same_corpus(make_corpus: MakeCorpus) -> None:
    corpus = make_corpus([[("U", SHO)]])
    with pytest.raises(ScoringError, match="short has masks of shape"):
        pick_cases(corpus, {"short": u16()})
    with pytest.raises(ScoringError, match="at least one model"):
        pick_cases(corpus, {})
