"""The spread between repeated runs."""

# ruff: noqa: F811
from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Predictions
from cradle_lib.detection.runs.find_runs import repeated_runs
from cradle_lib.detection.runs.run_model import run_model
from cradle_lib.errors import ScoringError
from cradle_lib.labels import BITS
from cradle_lib.scoring.analyses.repeats import run_spread
from cradle_lib.scoring.evaluate import evaluate

from ...forty_dialogues import corpus, make_run  # noqa: F401

MakeRun = Callable[..., Predictions]


def noisy(corpus: Corpus, make_run: MakeRun, seed: int) -> Predictions:
    """Makes a run that finds about 60 % of the labels and adds an alert to 5 % of the turns."""
    gold = np.array([turn.mask for dialogue in corpus for turn in dialogue.user_turns], np.uint16)
    kept = np.random.default_rng(seed).random(len(gold)) < 0.6
    invented = np.random.default_rng(seed + 999).random(len(gold)) < 0.05
    masks = np.where(kept, gold, 0) | np.where(invented, BITS["alert_ongoing"], 0)
    return make_run("noisy", masks.astype(np.uint16))


def test_the_spread_equals_that_of_single_evaluations(corpus: Corpus, make_run: MakeRun) -> None:
    repeats = [noisy(corpus, make_run, seed) for seed in range(3)]
    found = run_spread({"noisy": repeats}, draws=200).set_index("level")
    for level in ("turn", "dialogue", "confirm"):
        each = [evaluate(run, level=level, draws=200).estimate("micro_f1") for run in repeats]
        row = found.loc[level]
        assert row["sd"] == pytest.approx(statistics.stdev(float(e.value) for e in each))
        assert row["value"] == pytest.approx(statistics.mean(float(e.value) for e in each))
        assert (row["lowest"], row["highest"]) == (min(each).value, max(each).value)
        half = statistics.mean(float(e.high - e.low) / 2 for e in each)
        assert row["margin"] == pytest.approx(half)
        assert row["margin_with_runs"] == pytest.approx(math.hypot(half, 1.96 * row["sd"]), 1e-3)


def test_runs_over_other_dialogues_are_refused(corpus: Corpus, make_run: MakeRun) -> None:
    whole = noisy(corpus, make_run, 0)
    part = whole.subset(corpus.subset(range(20), "twenty"))
    for repeats in ([whole, part], []):
        with pytest.raises(ScoringError, match="not over the same dialogues"):
            run_spread({"noisy": repeats})


def test_repeated_runs_are_found(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "SHIPPED_RUNS", tmp_path / "shipped")
    for seed in ("1", "2"):
        monkeypatch.setattr(paths, "RUNS", tmp_path / "runs" / "repeats" / "sampled" / seed)
        run_model("always-none", corpus)
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    found = repeated_runs(corpus)
    assert {name: len(runs) for name, runs in found.items()} == {"sampled": 2}
    assert all(run.covers_corpus for run in found["sampled"])
