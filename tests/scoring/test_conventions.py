from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.corpus import Corpus
from cradle_lib.errors import ScoringError
from cradle_lib.scoring.conventions import Conventions, Orphans, Rows, align_rows, orphans_of
from cradle_lib.scoring.counts import count

from .made_runs import AO, DVP, SHO, make_corpus, make_predictions

row = st.tuples(st.sampled_from("UUL+"), st.sampled_from([0, 0, AO, SHO, AO | DVP]))
# Every dialogue has a user turn, so that there is always something to attach to.
dialogue = st.tuples(st.lists(row, max_size=6), st.lists(row, max_size=6)).map(
    lambda parts: [("L", 0), *parts[0], ("U", 0), *parts[1]]
)
corpora = st.lists(dialogue, min_size=1, max_size=4)


def aligned(corpus: Corpus, orphans: Orphans, predicted: Sequence[int] = ()) -> Rows:
    run = make_predictions(corpus, predicted or [0] * len(corpus.gold))
    return align_rows(run, Conventions(orphans=orphans))


@settings(deadline=None, max_examples=20)
@given(corpora)
def test_attached_orphans_equal_those_of_a_loop(dialogues: list[list[tuple[str, int]]]) -> None:
    corpus = make_corpus(dialogues)
    expected = []
    for rows in corpus.dialogues:
        masks: list[int] = []
        waiting = 0
        for turn in rows.turns:
            if turn.asked:
                masks.append(turn.mask | waiting)
                waiting = 0
            elif masks:
                masks[-1] |= turn.mask
            else:
                waiting |= turn.mask
        expected += masks
    assert aligned(corpus, "attach").gold.tolist() == expected


@settings(deadline=None, max_examples=20)
@given(corpora, st.integers(0, 99))
def test_counted_orphans_are_false_negatives(
    dialogues: list[list[tuple[str, int]]], seed: int
) -> None:
    corpus = make_corpus(dialogues)
    random = Random(seed)
    predicted = [random.choice([0, AO, SHO]) for _ in corpus.gold]
    plain, more = aligned(corpus, "ignore", predicted), aligned(corpus, "count", predicted)
    orphans, n = orphans_of(corpus), len(corpus)
    assert len(more.gold) == len(plain.gold) + len(orphans)
    before, after = count(plain, n), count(more, n)
    extra = np.zeros_like(before.tallies)
    for position, turn in orphans:
        extra[position, :, 2] += [turn.mask >> i & 1 for i in range(16)]
    assert (after.tallies - before.tallies == extra).all()
    assert (after.sets[:, 1:] == before.sets[:, 1:]).all()
    # At dialogue level, gold is the union of all rows, including orphans.
    whole = count(more, n, level="dialogue").tallies[:, :, [0, 2]].sum(axis=2)
    assert [sum(int(b) << i for i, b in enumerate(bits)) for bits in whole] == [
        dialogue.mask for dialogue in corpus
    ]


def test_a_counted_orphan_is_not_an_unusable_answer() -> None:
    corpus = make_corpus([[("U", 0), ("L", AO)]])
    rows = aligned(corpus, "count")
    turn = count(rows, 1, conventions=Conventions(unparsed="exclude"))
    assert turn.sets.tolist() == [[2, 1, 1]]
    # At confirm level, nothing is gold or predicted, and every answer was usable.
    assert count(rows, 1, level="confirm").sets.tolist() == [[1, 1, 1]]


def test_an_orphan_without_a_user_turn_is_attached_to_none() -> None:
    corpus = make_corpus([[("U", 0)], [("L", SHO)]])
    assert aligned(corpus, "attach").gold.tolist() == [0]
    assert aligned(corpus, "count").gold.tolist() == [0, SHO]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"zero_division": float("nan")}, "zero_division is nan"),
        ({"orphans": "drop"}, "Choose one of ignore, attach, count"),
    ],
)
def test_unknown_conventions_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ScoringError, match=message):
        Conventions(**changed)
