"""Finding, running and grouping the runs of a page."""

# ruff: noqa: F811
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import (
    Predictions,
    Prompt,
    load_predictions,
    load_registry,
    run_model,
    stored_runs,
)
from cradle_lib.detection.models import registry as models
from cradle_lib.detection.runs import find_runs
from cradle_lib.detection.runs import run_model as run_model_module
from cradle_lib.detection.runs.find_runs import common_dialogues, load_run, run_sets
from cradle_lib.detection.runs.run import run
from cradle_lib.detection.runs.run_model import default_runs
from cradle_lib.errors import JournalError, NoRunError, ScoringError

from ...forty_dialogues import corpus, make_run, runs  # noqa: F401
from ..dialogues import make_corpus

JOURNAL = Path("runs/surrogate-test/keyword.jsonl")


@pytest.fixture(scope="module")
def forty() -> Corpus:
    """Forty dialogues of eight alternating turns, four of them user turns."""
    rows = [
        [(("Listener", "User")[turn % 2], f"{index}.{turn} Well.", "none") for turn in range(8)]
        for index in range(40)
    ]
    return make_corpus(rows, "surrogate-test")


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty folders for journals, and a registry in which the keyword model has a sample."""
    entries = load_registry()
    entries["keyword"] = entries["keyword"].model_copy(update={"sample": 5})
    for module in (find_runs, run_model_module, models):
        monkeypatch.setattr(module, "load_registry", lambda: entries)
    return home


def test_a_model_is_run_once_and_then_loaded(home: Path, forty: Corpus) -> None:
    first = run_model("keyword", forty)
    assert (len(first.corpus), len(first.masks), first.of_turns) == (5, 20, 160)
    assert not first.covers_corpus
    assert set(first.record.dialogues or ()) == {dialogue.id for dialogue in first.corpus}
    content = (home / JOURNAL).read_bytes()
    assert run_model("keyword", forty).masks.tolist() == first.masks.tolist()
    assert (home / JOURNAL).read_bytes() == content
    # A shipped journal is loaded, and nothing is run.
    (home / "runs").rename(home / "shipped")
    assert len(run_model("keyword", forty).corpus) == 5
    assert not (home / "runs").exists()
    assert [run.record.model for run in stored_runs(forty, ["keyword"])] == ["keyword"]


def test_default_and_own_models_are_loaded_without_names(home: Path, forty: Corpus) -> None:
    def mine(prompt: Prompt) -> str:
        return "none"

    with pytest.raises(JournalError, match="no model of the default set has been run"):
        stored_runs(forty)
    with pytest.raises(JournalError, match=r"no run of Always none over surrogate-test"):
        stored_runs(forty, ["always-none"])
    run_model(mine, forty)
    run_model("keyword", forty)
    run_model("always-none", forty)
    run_model("always-none", forty, "gold")
    # In the registry's order, not in that of the runs; tfidf has not been run.
    found = ["always-none", "keyword", "mine"]
    assert [one.record.model for one in stored_runs(forty)] == found
    # A model of the registry that is not in the default set has a run of the user.
    folder = home / "runs" / forty.name
    (folder / "qwen3-32b.jsonl").write_bytes((folder / "keyword.jsonl").read_bytes())
    assert len(stored_runs(forty)) == 4
    # The page of runs has the same, after the other baselines were run.
    made = default_runs(forty)
    assert len(made) == len(stored_runs(forty)) > 4
    # The run of the notebook template is shown on its own page only.
    (folder / "qwen3-32b.jsonl").rename(folder / f"{paths.TEMPLATE_RUN}.jsonl")
    assert len(default_runs(forty)) == len(made) - 1


def test_a_damaged_journal_is_kept(home: Path, forty: Corpus) -> None:
    run_model("keyword", forty)
    damaged = (home / JOURNAL).read_bytes().replace(b'"outcome": "ok"', b'"outcome": "fine"', 1)
    (home / JOURNAL).write_bytes(damaged)
    with pytest.raises(JournalError, match="line 2"):
        run_model("keyword", forty)
    assert (home / JOURNAL).read_bytes() == damaged


def test_an_unfinished_run_is_loaded_with_its_complete_dialogues(home: Path, forty: Corpus) -> None:
    run_model("keyword", forty)
    lines = (home / JOURNAL).read_bytes().splitlines(keepends=True)
    (home / JOURNAL).write_bytes(b"".join(lines[:-1]))
    [part] = stored_runs(forty, ["keyword"])
    assert (len(part.corpus), part.is_finished, part.covers_corpus) == (4, False, False)
    # A run without a complete dialogue is omitted by default, and an error if it is requested.
    (home / JOURNAL).write_bytes(b"".join(lines[:2]))
    run_model("always-none", forty)
    assert [run.record.model for run in stored_runs(forty)] == ["always-none"]
    with pytest.raises(NoRunError, match="no dialogue of surrogate-test completely"):
        stored_runs(forty, ["keyword"])


@pytest.mark.parametrize(
    ("limit", "answers", "covered", "finished"),
    [
        (None, 4, [0, 1, 2], True),
        (None, 2, [0], False),
        (1, 2, [0], True),
        (2, 2, [0, 1], True),
        (2, 1, [], False),
        (2, 0, [], False),
    ],
)
def test_a_dialogue_without_user_turns_is_covered_only_by_finished_runs(
    limit: int | None, answers: int, covered: list[int], finished: bool, tmp_path: Path
) -> None:
    asked = [("User", "Hello.", "none"), ("User", "The bus was late.", "none")]
    corpus = make_corpus([asked, [("Listener", "Well.", "none")], asked])
    keyword = load_registry()["keyword"]
    journal = run(keyword, corpus, out=tmp_path / "keyword.jsonl", limit=limit)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: 1 + answers]))
    if not covered:
        with pytest.raises(NoRunError, match="covers no dialogue of"):
            load_predictions(journal, corpus, partial=True)
        return
    found = load_predictions(journal, corpus, partial=True)
    assert [dialogue.index for dialogue in found.corpus] == covered
    assert found.is_finished is finished
    # Two parts that share only a dialogue without user turns have nothing in common.
    if len(covered) > 1:
        other = replace(found, corpus=corpus.subset([1], "other"), masks=found.masks[:0])
        with pytest.raises(ScoringError, match="no dialogue with a user turn is covered"):
            common_dialogues([found, other])


def test_shards_are_joined_and_missing_ones_are_reported(home: Path, forty: Corpus) -> None:
    keyword = load_registry()["keyword"]
    complete = load_predictions(run(keyword, forty, out=home / "whole"), forty)
    for index in (0, 2, 3):
        run(keyword, forty, out=home / "runs", shard=f"{index}/4")
    with pytest.raises(JournalError, match="answers 120 of 160 user turns"):
        load_run(keyword, forty)
    # A page shows the finished dialogues.
    [begun] = stored_runs(forty)
    assert (len(begun.corpus), begun.is_finished) == (30, False)
    run(keyword, forty, out=home / "runs", shard="1/4")
    for joined in (load_run(keyword, forty), *stored_runs(forty)):
        np.testing.assert_array_equal(joined.masks, complete.masks)
        assert (joined.record.shard, joined.record.dialogues) == (None, None)
    run(keyword, forty, out=home / "runs", shard="0/2")
    with pytest.raises(JournalError, match="shards i/n with different n"):
        load_run(keyword, forty)


def test_runs_are_grouped_by_dialogues_with_the_baseline_first(runs: list[Predictions]) -> None:
    sets = run_sets(runs, "keyword")
    assert [[run.record.model for run in group] for group in sets] == [["keyword", "always-none"]]
    # A sample of four dialogues is too small for tests.
    assert [len(group[0].corpus) for group in sets] == [40]
    large = replace(runs[2], **vars(runs[1].subset(runs[1].corpus.subset(range(20), "twenty"))))
    assert [len(group[0].corpus) for group in run_sets([*runs[:2], large])] == [40, 20]
    assert run_sets(runs[:1]) == []
