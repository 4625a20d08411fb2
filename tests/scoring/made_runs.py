"""Small corpora and runs, built from masks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.detection.protocol.parsing import OUTCOMES
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.labels import BITS
from cradle_lib.record import Record
from cradle_lib.scoring.conventions import Conventions, Level, Rows
from cradle_lib.scoring.counts import Counts, count

AO, AP = BITS["alert_ongoing"], BITS["alert_past"]
SHO, SHP = BITS["confirm_SH_ongoing"], BITS["confirm_SH_past"]
DVO, DVP = BITS["confirm_DV_ongoing"], BITS["confirm_DV_past"]

# A row is a speaker ("U", "L", or "+" for a continuation of the row above) and a mask.
Row = tuple[str, int]
# Gold and predicted mask of each user turn of each dialogue.
Turns = Sequence[Sequence[tuple[int, int]]]

# Frequent masks, mostly empty, and some masks of up to four labels.
masks = st.one_of(
    st.sampled_from([0, 0, AO, SHO, AO | SHO, DVP]),
    st.sets(st.integers(0, 15), max_size=4).map(lambda bits: sum(1 << bit for bit in bits)),
)
dialogues = st.lists(
    st.lists(st.tuples(masks, masks), min_size=1, max_size=9), min_size=1, max_size=5
)


def make_corpus(dialogues: Sequence[Sequence[Row]]) -> Corpus:
    """Builds a corpus from rows."""
    built = []
    row = 0
    for index, rows in enumerate(dialogues):
        turns: list[Turn] = []
        for position, (kind, mask) in enumerate(rows):
            continues = kind == "+"
            above = turns[-1].speaker if turns else "User"
            speaker = above if continues else {"U": "User", "L": "Listener"}[kind]
            turns.append(Turn(row, position, speaker, f"row {row}", mask, continues))
            row += 1
        built.append(Dialogue(index, tuple(turns)))
    return Corpus("tiny", tuple(built))


def make_predictions(
    corpus: Corpus, masks: Sequence[int], outcomes: str = "", name: str = "M"
) -> Predictions:
    """Builds the predictions of a run; outcomes are first letters, such as ``ouo``."""
    codes = {outcome.value[0]: code for code, outcome in enumerate(OUTCOMES)}
    record = Record.create(
        model="m",
        name=name,
        group="baseline",
        engine="baseline",
        prompt="detection",
        prompt_hash="0" * 12,
        decoding={},
        corpus=corpus.name,
        corpus_fingerprint=corpus.fingerprint,
    )
    return Predictions(
        record=record,
        corpus=corpus,
        masks=np.array(masks, dtype=np.uint16),
        outcomes=np.array([codes[o] for o in outcomes or "o" * len(masks)], dtype=np.uint8),
        answers=("",) * len(masks),
        of_turns=len(masks),
    )


def run_of(turns: Turns, outcomes: str = "") -> Predictions:
    """Builds a run over dialogues of user turns only."""
    corpus = make_corpus([[("U", gold) for gold, _ in dialogue] for dialogue in turns])
    return make_predictions(corpus, [tag for dialogue in turns for _, tag in dialogue], outcomes)


def noisy_run() -> Predictions:
    """Sixty dialogues of five turns, with false negatives, false positives and unusable answers."""
    chance = np.random.default_rng(11)
    one, two, added = (
        np.where(chance.random(300) < share, 1 << chance.integers(0, 16, 300), 0)
        for share in (0.4, 0.1, 0.2)
    )
    gold = one | two
    predicted = np.where(chance.random(300) < 0.5, gold, 0) | added
    unusable = chance.random(300) < 0.1
    corpus = make_corpus([[("U", int(m)) for m in part] for part in gold.reshape(60, 5)])
    outcomes = "".join("u" if each else "o" for each in unusable)
    return make_predictions(corpus, np.where(unusable, 0, predicted).tolist(), outcomes)


def counted(
    gold: ArrayLike,
    predicted: ArrayLike,
    dialogue_of: ArrayLike,
    n: int,
    *,
    answered: ArrayLike | None = None,
    level: Level = "turn",
    conventions: Conventions | None = None,
) -> Counts:
    """Counts rows of masks; every row has a usable answer unless ``answered`` says otherwise."""
    rows = Rows(
        np.array(gold, dtype=np.uint16),
        np.array(predicted, dtype=np.uint16),
        np.array(dialogue_of, dtype=np.int64),
        np.ones(np.shape(gold), np.bool_) if answered is None else np.array(answered, np.bool_),
    )
    return count(rows, n, level=level, conventions=conventions)


def systems(number: int, dialogues: int, seed: int, level: Level = "turn") -> list[Counts]:
    """Makes similar systems: each finds half of the labels and adds false positives."""
    generator = np.random.default_rng(seed)
    owner = np.repeat(np.arange(dialogues), generator.integers(3, 9, size=dialogues))
    size = len(owner)
    every = (1 << np.arange(16)).astype(np.uint16)
    gold = np.where(generator.random(size) < 0.3, generator.choice(every, size), 0)
    found = []
    for _ in range(number):
        tags = np.where(generator.random(size) < 0.5, gold, 0)
        tags = tags | np.where(generator.random(size) < 0.1, generator.choice(every, size), 0)
        found.append(counted(gold, tags, owner, dialogues, level=level))
    return found


def bits(masks: ArrayLike) -> NDArray[np.int64]:
    """Converts masks to a 0-1 matrix of shape (T, 16)."""
    return (np.array(masks, dtype=np.int64)[:, None] >> np.arange(16)) & 1
