"""Shared fixtures: forty dialogues with hostile text, and three runs over them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.detection import Predictions
from cradle_lib.labels import BITS

from .scoring.made_runs import make_predictions

HOSTILE = "</details><script>alert('x')</script> & \"quoted\""


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    """Forty dialogues in which speakers alternate; about one user turn in five has a label."""
    chance = random.Random(3)
    dialogues = []
    for index in range(40):
        turns = []
        for turn_id in range(8):
            mask = 0
            if turn_id % 2 and chance.random() < 0.2:
                mask = chance.choice([*BITS.values()])
            speaker = "User" if turn_id % 2 else "Listener"
            text = f"{index}.{turn_id} {HOSTILE}"
            turns.append(Turn(8 * index + turn_id, turn_id, speaker, text, mask))
        # The last utterance has two rows.
        turns.append(Turn(8 * index + 8, 8, "User", f"{index}.8 and more", 0, continues=True))
        dialogues.append(Dialogue(index, tuple(turns)))
    meta = {
        "scenario": [chance.choice(["S1", "S2", "S3"]) for _ in dialogues],
        "timing": [chance.choice(["early", "mid", "late"]) for _ in dialogues],
    }
    return Corpus("surrogate-test", tuple(dialogues), meta=meta, synthetic=True)


@pytest.fixture(scope="session")
def make_run(corpus: Corpus) -> Callable[..., Predictions]:
    """A function that makes a run from masks, optionally with every tenth answer unparsed."""

    def make(model: str, masks: np.ndarray, *, unparsed: bool = False) -> Predictions:
        outcomes = "".join("o" if place % 10 else "u" for place in range(len(masks)))
        if unparsed:
            masks = np.where(np.arange(len(masks)) % 10, masks, 0)
        run = make_predictions(corpus, masks, outcomes if unparsed else "", name=f"Model <{model}>")
        about = {"model": model, "engine": model, "prompt": "turn"}
        return replace(run, record=run.record.model_copy(update=about))

    return make


@pytest.fixture(scope="session")
def runs(corpus: Corpus, make_run: Callable[..., Predictions]) -> list[Predictions]:
    """Three runs: no predictions; half of gold and some false positives; a sample of four."""
    generator = np.random.default_rng(5)
    size = len(corpus.gold)
    found = np.where(generator.random(size) < 0.5, corpus.gold, 0)
    added = np.where(generator.random(size) < 0.1, 1 << generator.integers(0, 16, size), 0)
    half = make_run("keyword", (found | added).astype(np.uint16), unparsed=True)
    part = corpus.subset([3, 9, 20, 31], "surrogate-test[4]")
    return [
        make_run("always-none", np.zeros(size, dtype=np.uint16)),
        half,
        make_run("smollm2-135m", (found | added).astype(np.uint16)).subset(part),
    ]
