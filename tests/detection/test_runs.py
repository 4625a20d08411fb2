"""Where the runs of a page come from: shipped, made, or asked for."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cradle_lib import paths
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import (
    Answer,
    Journal,
    Model,
    Prompt,
    Session,
    journal_path,
    load_predictions,
    load_registry,
    read_journal,
    run_model,
    runs,
    stored_runs,
)
from cradle_lib.detection import registry as models
from cradle_lib.detection.baselines.function import Function
from cradle_lib.detection.journal_paths import PAGE
from cradle_lib.detection.registry import Registry
from cradle_lib.detection.run import run
from cradle_lib.detection.run_sets import with_same_dialogues
from cradle_lib.detection.runs import infer_command, load_run
from cradle_lib.errors import JournalError, NoRunError, RegistryError
from cradle_lib.prompts import load_template
from cradle_lib.record import Record

from .dialogues import make_corpus

main = import_module("cradle_lib.cli.main")


@pytest.fixture
def corpus() -> Corpus:
    """Forty dialogues in which a listener and a user take turns, four of these each."""
    rows = [
        [(("Listener", "User")[turn % 2], f"{index}.{turn} Well.", "none") for turn in range(8)]
        for index in range(40)
    ]
    return replace(make_corpus(rows), name="surrogate-test")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty folders for journals, and a registry in which the keyword model has a sample."""
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(paths, "SHIPPED_RUNS", tmp_path / "shipped")
    entries = {model.id: model.model_dump(exclude={"id"}) for model in load_registry().sound}
    entries["keyword"]["sample"] = 5
    for module in (runs, models):
        monkeypatch.setattr(module, "load_registry", lambda: Registry(entries))
    return tmp_path


def test_a_model_is_run_once_and_its_journal_used_after_that(home: Path, corpus: Corpus) -> None:
    first = run_model("always-none", corpus)
    journal = home / "runs" / "surrogate-test" / "always-none.jsonl"
    content = journal.read_bytes()
    again = run_model("always-none", corpus)
    assert journal.read_bytes() == content
    assert first.masks.tolist() == again.masks.tolist() == [0] * 160
    assert first.is_whole


def test_a_model_with_a_sample_is_aligned_to_it(home: Path, corpus: Corpus) -> None:
    run = run_model("keyword", corpus)
    assert len(run.corpus) == 5
    assert len(run.masks) == 20
    assert run.of_turns == 160
    assert not run.is_whole
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
    for spec in ("hf:./tiny", "openai:gpt-x", "anthropic:claude-x"):
        assert infer_command(models.resolve(spec), whole) == f"cradle infer --model {spec}"
    slow = models.resolve("hf:ORG/Tiny", engine="reference", temperature=0.5)
    words = shlex.split(infer_command(slow, whole))
    assert words[2:] == [
        "--model", "hf:ORG/Tiny", "--set", "engine=reference", "--set", "temperature=0.5"
    ]  # fmt: skip
    own = models.resolve("openai:m", base_url="http://127.0.0.1:1/v1", key="MY_KEY")
    told = "cradle infer --model openai:m --set base_url=http://127.0.0.1:1/v1 --set key=MY_KEY"
    assert infer_command(own, whole) == told
    function = Function(lambda _: "none", "Mine").model
    assert infer_command(function, whole) == "run_model(..., name='Mine')"
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


def change_the_lexicon(journal: Path) -> bytes:
    """Writes a journal anew as if another lexicon had made it."""
    record, stored = read_journal(journal)
    journal.unlink()
    other = record.model_copy(update={"revision": "lexicon:0123456789ab"})
    with Journal.open(journal, other) as opened:
        for prediction in stored:
            opened.append(prediction)
    return journal.read_bytes()


def test_a_baseline_that_changed_is_run_anew_and_its_old_journal_set_aside(
    home: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run_model("keyword", corpus)
    journal = home / "runs" / "surrogate-test" / "keyword.jsonl"
    changed = [change_the_lexicon(journal)]
    assert run_model("keyword", corpus).record.revision == first.record.revision
    assert "belongs to another run: revision is 'lexicon:0123456789ab'" in capsys.readouterr().err
    changed.append(change_the_lexicon(journal))
    run_model("keyword", corpus)
    # Nothing that was set aside before is lost.
    kept = [journal.with_suffix(f".outdated-{number}").read_bytes() for number in (1, 2)]
    assert kept == changed


def test_a_damaged_journal_is_never_set_aside(home: Path, corpus: Corpus) -> None:
    run_model("keyword", corpus)
    journal = home / "runs" / "surrogate-test" / "keyword.jsonl"
    damaged = journal.read_bytes().replace(b'"outcome": "ok"', b'"outcome": "fine"', 1)
    journal.write_bytes(damaged)
    with pytest.raises(JournalError, match="line 2"):
        run_model("keyword", corpus)
    assert journal.read_bytes() == damaged


def test_a_run_that_is_not_finished_is_shown_as_far_as_it_goes(home: Path, corpus: Corpus) -> None:
    run_model("keyword", corpus)
    journal = home / "runs" / "surrogate-test" / "keyword.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]))
    [part] = stored_runs(corpus, ["keyword"])
    assert (len(part.corpus), part.is_finished, part.is_whole) == (4, False, False)
    with pytest.raises(JournalError, match="4 of the run's 5 dialogues are complete"):
        load_run(Model.model_validate(SAMPLED), corpus)
    # Nothing complete at all: it is left out of the default set, and named if it is asked for.
    journal.write_bytes(b"".join(lines[:2]))
    run_model("always-none", corpus)
    assert [run.record.model for run in stored_runs(corpus)] == ["always-none"]
    with pytest.raises(NoRunError, match="no dialogue of surrogate-test completely"):
        stored_runs(corpus, ["keyword"])


SAMPLED = {"id": "keyword", "name": "K", "group": "baseline", "engine": "keyword", "sample": 5}
LOCAL = Model.model_validate(
    {"id": "own", "name": "Own", "group": "open", "engine": "reference", "weights": "org/own"}
)


def test_a_page_never_runs_a_model_or_makes_its_journal_longer(
    home: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PAGE, "any")
    monkeypatch.setattr(runs, "run", lambda *_, **__: pytest.fail("a page ran a model"))
    with pytest.raises(NoRunError, match="cradle infer --model own`"):
        run_model(LOCAL, corpus)
    journal = journal_path(LOCAL, corpus)
    fields = {"model": "own", "name": "Own", "group": "open", "engine": "reference"}
    text = load_template("turn")
    record = Record.create(
        **fields,
        prompt="turn",
        prompt_hash=text.hash,
        decoding={},
        corpus=corpus.name,
        corpus_fingerprint=corpus.fingerprint,
    )
    session = Session(corpus.dialogues[0], text)
    with Journal.open(journal, record) as opened:
        while session.prompt is not None:
            opened.append(session.answer(Answer("none")))
    before = journal.read_bytes()
    part = run_model(LOCAL, corpus)
    assert (len(part.corpus), part.is_finished) == (1, False)
    assert journal.read_bytes() == before


def test_shards_are_found_joined_and_missing_ones_named(home: Path, corpus: Corpus) -> None:
    keyword = load_registry()["keyword"]
    whole = load_predictions(run(keyword, corpus, out=home / "whole"), corpus)
    for index in (0, 2, 3):
        run(keyword, corpus, out=home / "runs", shard=f"{index}/4")
    with pytest.raises(JournalError, match=r"of its 4 shards, 1/4 is missing\. Make it with"):
        load_run(keyword, corpus)
    # A page shows what is there.
    assert len(stored_runs(corpus)[0].corpus) == 30
    run(keyword, corpus, out=home / "runs", shard="1/4")
    for joined in (load_run(keyword, corpus), *stored_runs(corpus)):
        np.testing.assert_array_equal(joined.masks, whole.masks)
        assert (joined.record.shard, joined.record.dialogues) == (None, None)
    run(keyword, corpus, out=home / "runs", shard="0/2")
    with pytest.raises(JournalError, match="shards of 2 and of 4"):
        load_run(keyword, corpus)


def test_a_run_in_shards_is_finished_when_all_its_dialogues_are(home: Path, corpus: Corpus) -> None:
    keyword = load_registry()["keyword"]
    chosen = [dialogue.id for dialogue in corpus][:6]
    shards = [
        run(keyword, corpus, out=home / "runs", limit=6, shard=f"{index}/2") for index in (0, 1)
    ]
    complete = load_predictions(shards, corpus, partial=True)
    assert (sorted(complete.record.dialogues or ()), complete.is_finished) == (sorted(chosen), True)
    # Half of a run says nothing of the dialogues of the other half.
    assert not load_predictions(shards[:1], corpus, partial=True).is_finished
    for shard in shards:
        header, *lines = shard.read_bytes().splitlines(keepends=True)
        first = json.loads(lines[0])["dialogue"]
        own = [line for line in lines if json.loads(line)["dialogue"] == first]
        shard.write_bytes(b"".join([header, *own]))
    begun = load_predictions(shards, corpus, partial=True)
    assert (len(begun.corpus), begun.is_finished) == (2, False)


def test_runs_without_an_entry_stand_after_those_of_the_default_set(
    home: Path, corpus: Corpus
) -> None:
    def shy(prompt: Prompt) -> str:
        return "none"

    run_model(shy, corpus)
    run_model("always-none", corpus)
    run_model("always-none", corpus, "gold")
    assert [run.record.model for run in stored_runs(corpus)] == ["always-none", "shy"]
