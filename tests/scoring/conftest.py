from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.detection.parsing import OUTCOMES
from cradle_lib.detection.predictions import Predictions
from cradle_lib.record import Record

# A row is a speaker ("U", "L", or "+" for a continuation of the row above) and a mask.
Row = tuple[str, int]


@pytest.fixture(scope="session")
def make_corpus() -> Callable[[Sequence[Sequence[Row]]], Corpus]:
    """Builds a corpus from rows."""

    def build(dialogues: Sequence[Sequence[Row]]) -> Corpus:
        built = []
        row = 0
        for index, rows in enumerate(dialogues):
            turns: list[Turn] = []
            for position, (kind, mask) in enumerate(rows):
                continues = kind == "+"
                above = turns[-1].speaker if turns else "User"
                speaker = above if continues else {"U": "User", "L": "Listener"}[kind]
                text = f"row {row}"
                turns.append(Turn(row, position, speaker, text, mask, continues))
                row += 1
            built.append(Dialogue(index, tuple(turns)))
        return Corpus("tiny", tuple(built))

    return build


@pytest.fixture(scope="session")
def make_predictions() -> Callable[..., Predictions]:
    """Builds the predictions of a run that tagged these masks."""

    def build(corpus: Corpus, masks: Sequence[int], outcomes: str = "") -> Predictions:
        codes = {outcome.value[0]: code for code, outcome in enumerate(OUTCOMES)}
        record = Record.create(
            model="m",
            name="M",
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

    return build
