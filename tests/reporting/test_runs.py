"""Where the runs of a page come from: shipped, made, or asked for."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cradle_lib import paths
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import load_registry
from cradle_lib.errors import JournalError, RegistryError
from cradle_lib.reporting import inference, runs
from cradle_lib.reporting.inference import run_model
from cradle_lib.reporting.runs import (
    infer_command,
    is_whole,
    load_run,
    stored_runs,
    with_same_dialogues,
)

main = import_module("cradle_lib.cli.main")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty folders for journals, and a registry in which the keyword model has a sample."""
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(paths, "SHIPPED_RUNS", tmp_path / "shipped")
    registry = load_registry()
    sampled = {"keyword": registry["keyword"].model_copy(update={"sample": 5})}
    for module in (inference, runs):
        monkeypatch.setattr(module, "load_registry", lambda: registry | sampled)
    return tmp_path


def test_a_model_is_run_once_and_its_journal_used_after_that(home: Path, corpus: Corpus) -> None:
    first = run_model("always-none", corpus)
    journal = home / "runs" / "surrogate-test" / "always-none.jsonl"
    content = journal.read_bytes()
    again = run_model("always-none", corpus)
    assert journal.read_bytes() == content
    assert first.masks.tolist() == again.masks.tolist() == [0] * 160
    assert is_whole(first)


def test_a_model_with_a_sample_is_aligned_to_it(home: Path, corpus: Corpus) -> None:
    run = run_model("keyword", corpus)
    assert len(run.corpus) == 5
    assert len(run.masks) == 20
    assert run.of_turns == 160
    assert not is_whole(run)
    assert set(run.record.dialogues or ()) == {dialogue.id for dialogue in run.corpus}


def test_a_journal_that_ships_is_used_and_nothing_is_run(home: Path, corpus: Corpus) -> None:
    run_model("keyword", corpus)
    (home / "runs").rename(home / "shipped")
    assert len(run_model("keyword", corpus).corpus) == 5
    assert not (home / "runs").exists()
    assert [run.record.model for run in stored_runs(corpus, ["keyword"])] == ["keyword"]


def test_a_missing_run_says_how_to_make_it(home: Path, corpus: Corpus) -> None:
    with pytest.raises(JournalError, match=r"Always none.*surrogate-test.*--model always-none"):
        stored_runs(corpus, ["always-none"])


def test_the_command_for_a_missing_run_makes_that_run(
    home: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / "my dialogues; and more.csv"
    rows = ["turn_id,text,labels", "0,User: I have been hurting myself.,confirm_SH_ongoing"]
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    monkeypatch.chdir(home)
    for loaded, model, history in (
        (load_corpus(file), "always-none", "gold"),
        (load_corpus("surrogate", "dev"), "always-none", "self"),
    ):
        entry = load_registry()[model]
        with pytest.raises(JournalError) as missing:
            load_run(entry, loaded, history)
        [command] = re.findall(r"`(.*)`", str(missing.value))
        program, *arguments = shlex.split(command)
        assert program == "cradle"
        done = CliRunner().invoke(main.app, [*arguments, "--out", str(paths.RUNS)])
        assert done.exit_code == 0, done.output
        assert len(load_run(entry, loaded, history).corpus) == len(loaded)


def test_the_surrogates_test_split_needs_no_name_and_a_sample_is_asked_for(home: Path) -> None:
    registry = runs.load_registry()
    whole = load_corpus("surrogate")
    assert infer_command(registry["tfidf"], whole) == "cradle infer --model tfidf"
    assert infer_command(registry["keyword"], whole) == "cradle infer --model keyword --sample 5"
    fetched = replace(whole, name="hub-test", path=paths.RELEASE / "test.parquet", synthetic=False)
    assert infer_command(registry["tfidf"], fetched) == "cradle infer --model tfidf --corpus hub"
    with pytest.raises(JournalError, match=r"infer --model keyword --corpus hub --sample 5`"):
        stored_runs(fetched)


def test_an_unknown_model_is_refused_with_the_nearest_name(home: Path, corpus: Corpus) -> None:
    with pytest.raises(RegistryError, match="keyword"):
        run_model("keywrod", corpus)


def test_whole_runs_come_first_and_are_restricted_to_each_sample(
    home: Path, corpus: Corpus
) -> None:
    made = [run_model("keyword", corpus), run_model("always-none", corpus)]
    extended = with_same_dialogues(made)
    assert [(run.record.model, len(run.corpus)) for run in extended] == [
        ("always-none", 40),
        ("always-none", 5),
        ("keyword", 5),
    ]


def test_two_samples_of_the_same_dialogues_meet_the_whole_runs_once(
    home: Path, corpus: Corpus
) -> None:
    sample, whole = run_model("keyword", corpus), run_model("always-none", corpus)
    extended = with_same_dialogues([sample, whole, sample])
    assert [(run.record.model, len(run.corpus)) for run in extended] == [
        ("always-none", 40),
        ("always-none", 5),
        ("keyword", 5),
        ("keyword", 5),
    ]


def test_without_names_the_default_models_that_were_run_are_loaded(
    home: Path, corpus: Corpus
) -> None:
    with pytest.raises(JournalError, match="no model of the default set has been run"):
        stored_runs(corpus)
    run_model("keyword", corpus)
    run_model("always-none", corpus)
    # In the registry's order, not in that of the runs; tfidf has not been run.
    assert [run.record.model for run in stored_runs(corpus)] == ["always-none", "keyword"]


def test_a_baseline_that_changed_is_run_anew_and_its_old_journal_set_aside(
    home: Path, corpus: Corpus
) -> None:
    run_model("keyword", corpus)
    journal = home / "runs" / "surrogate-test" / "keyword.jsonl"
    old = journal.read_bytes()
    lexicon = re.search(rb"lexicon:[0-9a-f]+", old)
    assert lexicon is not None
    journal.write_bytes(old.replace(lexicon[0], b"lexicon:0123456789ab"))
    changed = journal.read_bytes()
    again = run_model("keyword", corpus)
    assert str(again.record.revision).startswith(lexicon[0].decode())
    assert journal.with_suffix(".outdated").read_bytes() == changed


def test_the_journal_of_any_other_model_is_never_set_aside(
    home: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = load_registry()
    entry = registry["keyword"].model_copy(update={"group": "open"})
    monkeypatch.setattr(inference, "load_registry", lambda: {"keyword": entry})
    run_model("keyword", corpus)
    journal = home / "runs" / "surrogate-test" / "keyword.jsonl"
    changed = re.sub(rb"lexicon:[0-9a-f]+", b"lexicon:0123456789ab", journal.read_bytes())
    journal.write_bytes(changed)
    with pytest.raises(JournalError, match="identity"):
        run_model("keyword", corpus)
    assert journal.read_bytes() == changed


def test_a_sample_that_is_not_finished_is_refused(home: Path, corpus: Corpus) -> None:
    run_model("keyword", corpus)
    journal = home / "runs" / "surrogate-test" / "keyword.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(JournalError, match="4 of the run's 5 dialogues are complete"):
        stored_runs(corpus, ["keyword"])
