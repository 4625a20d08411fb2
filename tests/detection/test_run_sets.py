"""Runs put into sets over the same dialogues."""

# ruff: noqa: F811
from __future__ import annotations

from dataclasses import replace

import pytest

from cradle_lib.detection import Predictions
from cradle_lib.detection.run_sets import run_sets, with_same_dialogues

from ..forty_dialogues import corpus, make_run, runs  # noqa: F401


@pytest.fixture(scope="module")
def whole(runs: list[Predictions]) -> list[Predictions]:
    return runs[:2]


def test_runs_are_put_into_sets_with_the_baseline_first(runs: list[Predictions]) -> None:
    sets = run_sets(runs, "keyword")
    assert [[run.record.model for run in group] for group in sets] == [["keyword", "always-none"]]
    # A sample of four is nothing to test; beside a largest set of its own kind it would stay.
    assert [len(group[0].corpus) for group in sets] == [40]
    few = [run.subset(runs[2].corpus) for run in runs[:2]]
    assert [len(group[0].corpus) for group in run_sets([*few, runs[2]])] == [4]
    large = replace(runs[2], **vars(runs[1].subset(runs[1].corpus.subset(range(20), "twenty"))))
    assert [len(group[0].corpus) for group in run_sets([*runs[:2], large])] == [40, 20]
    assert run_sets(runs[:1]) == []


def test_samples_are_compared_with_the_same_dialogues_of_the_other_models(
    runs: list[Predictions],
) -> None:
    extended = with_same_dialogues(runs)
    assert [(run.record.model, len(run.corpus)) for run in extended] == [
        ("always-none", 40),
        ("keyword", 40),
        ("always-none", 4),
        ("keyword", 4),
        ("smollm2-135m", 4),
    ]
    assert len({run.corpus.fingerprint for run in extended[2:]}) == 1
    assert [run.is_whole for run in extended] == [True, True, False, False, False]
