"""Runs under ``runs/`` are described by their own records, and none can stop the others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import (
    Journal,
    Predictions,
    dev_runs,
    read_journal,
    repeated_runs,
    run_model,
    run_usage,
    stored_answers,
    stored_runs,
)
from cradle_lib.detection.runs.find_runs import NOT_SHOWN
from cradle_lib.detection.runs.journal import lock_journal
from cradle_lib.detection.runs.run_model import default_runs
from cradle_lib.errors import RegistryError
from cradle_lib.scoring import chosen_thresholds

SHIPPED = paths.SHIPPED_RUNS
CONSTRAINED = "smollm2-135m-tuned-constrained"
SPEC = {"model": "hf-my-tiny", "name": "./my-tiny", "group": "own", "weights": "./my-tiny"}


def clone(source: Path, target: Path, most: int | None = None, **changes: Any) -> Path:
    """Copies a journal, or its first dialogues, with another record."""
    record, answers = read_journal(source)
    ids = list(dict.fromkeys(answer.dialogue for answer in answers))[:most]
    with lock_journal(target), Journal.open(target, record.model_copy(update=changes)) as journal:
        for answer in answers:
            if answer.dialogue in ids:
                journal.append(answer)
    return target


@pytest.fixture(scope="module")
def surrogate() -> Corpus:
    return load_corpus()


def named(runs: list[Predictions]) -> list[str]:
    return [run.record.name for run in runs]


# ---- Runs that can't be read -------------------------------------------------------------


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


DAMAGE: dict[str, Callable[[Path, list[bytes]], object]] = {
    "empty": lambda path, _: write(path, b""),
    "binary": lambda path, _: write(path, bytes(range(256)) * 9),
    "torn header": lambda path, lines: write(path, lines[0][:100]),
    "torn line": lambda path, lines: write(path, b"\n".join([lines[0], lines[1][:20], lines[2]])),
    "only a header": lambda path, lines: write(path, lines[0] + b"\n"),
    "edited record": lambda path, lines: write(
        path, lines[0].replace(b'"engine": "', b'"engine": "x') + b"\n"
    ),
    "other dialogues": lambda path, lines: write(
        path, lines[0] + b"\n" + lines[1].replace(b'"key": "', b'"key": "z') + b"\n"
    ),
    "folder": lambda path, _: path.mkdir(),
    "broken link": lambda path, _: path.symlink_to("gone"),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["mine", "always-none", "mine.shard-0-of-2"])
def test_a_run_that_cannot_be_read_is_one_line_and_the_others_stay(
    damage: str, name: str, corpus: Corpus, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any file in the folder, whether the registry has its model or not."""
    path = run_model("always-none", corpus).files[0]
    run_model("keyword", corpus)
    lines = path.read_bytes().splitlines()
    target = path.with_name(f"{name}.jsonl")
    target.unlink(missing_ok=True)
    DAMAGE[damage](target, lines)
    others = {"Keyword lexicon"} | ({"Always none"} if name != "always-none" else set())
    for load in (stored_runs, default_runs):
        capsys.readouterr()
        # `default_runs` also runs a third baseline.
        found = {*named(load(corpus))} - {"First-turn prior"}
        assert others <= found
        shown = {x for x in capsys.readouterr().err.splitlines() if x.startswith(NOT_SHOWN)}
        unlearned = {line for line in shown if "learns from the train split" in line}
        # Two baselines have nothing to learn from.
        assert len(unlearned) == 2 * (load is default_runs)
        # A baseline's unfinished journal is completed.
        if found == others:
            [line] = shown - unlearned
            assert target.name in line
        else:
            assert (load, found - others) == (default_runs, {"Always none"})
    assert target.is_symlink() or target.exists()


def test_named_runs_are_errors_unless_they_may_be_skipped(
    corpus: Corpus,
    home: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = run_model("keyword", corpus).files[0]
    path.write_bytes(b"{}\n")
    for read in (stored_runs, stored_answers):
        with pytest.raises(ValueError, match="not the header of a journal"):
            read(corpus, ["keyword"])
    run_model("always-none", corpus)
    assert named(stored_runs(corpus, ["keyword", "always-none"], skip=True)) == ["Always none"]
    assert NOT_SHOWN in capsys.readouterr().err
    for load in (partial(stored_runs, skip=True), default_runs):
        with pytest.raises(RegistryError, match="no model 'absent'"):
            load(corpus, ["absent"])
    # A page leaves out answers that can't be read.
    monkeypatch.setenv("CRADLE_PAGE", "speed")
    assert stored_answers(corpus, ["keyword"]).empty


# ---- Runs without an entry, and several runs of one model ---------------------------------


def test_every_run_has_a_row_of_its_own(surrogate: Corpus, home: Path) -> None:
    shipped = home / "shipped" / "surrogate-test"
    own = home / "runs" / "surrogate-test"
    source = SHIPPED / "surrogate-test" / f"{CONSTRAINED}.jsonl"
    clone(source, shipped / source.name, 3)
    sampled = {**read_journal(source)[0].decoding, "temperature": 0.7}
    del sampled["mode"]
    # The same question, another one, a removed entry, a spec, and one with the same name.
    clone(source, own / source.name, 2)
    clone(source, own / f"{CONSTRAINED}.0a1b2c3d.jsonl", 2, decoding=sampled)
    clone(source, own / "removed.jsonl", 2, model="removed", name="Removed", group="open")
    clone(source, own / "hf-my-tiny.jsonl", 2, **SPEC)
    clone(source, own / "z.jsonl", 2, model="z", name="Removed", group="open")
    name = "SmolLM2-135M, tuned, constrained"
    assert named(stored_runs(surrogate)) == [
        name,
        "./my-tiny",
        "Removed",
        f"{name}, run 2",
        f"{name}, temperature 0.7, without mode",
        "Removed, z",
    ]
    assert named(stored_runs(surrogate, ["removed", CONSTRAINED])) == ["Removed", name]
    # Usage, by run and by name.
    used = run_usage(surrogate, stored_runs(surrogate))
    assert used["system"].tolist() == named(stored_runs(surrogate))
    [sums] = run_usage(surrogate, ["removed"]).to_dict("records")
    answers = read_journal(own / "removed.jsonl")[1]
    assert (sums["system"], sums["answers"]) == ("Removed", len(answers))
    assert sums["prompt_tokens"] == sum(answer.tokens_in or 0 for answer in answers)


def test_dev_runs_are_those_of_the_same_system(surrogate: Corpus, home: Path) -> None:
    """A spec, an entry, and the same entry with another setting."""
    bias = {"max_new_tokens": 48, "mode": "constrained", "dtype": "float32", "none_bias": 0.5}
    for corpus in ("surrogate-test", "surrogate-dev"):
        source, own = SHIPPED / corpus / f"{CONSTRAINED}.jsonl", home / "runs" / corpus
        clone(source, own / "hf-my-tiny.jsonl", 60, **SPEC)
        clone(source, own / f"{CONSTRAINED}.jsonl", 50, decoding=bias)
        clone(source, own / f"{CONSTRAINED}.11111111.jsonl", 40)
        # Names of journals mean nothing.
        (own / "junk.jsonl").write_bytes(b"junk\n")
    clone(SHIPPED / "surrogate-test" / f"{CONSTRAINED}.jsonl", own / "wrong.jsonl", 4)
    made = stored_runs(surrogate)
    assert [len(run.corpus) for run in made] == [40, 60, 50]
    dev = dev_runs(made, "surrogate")
    assert [len(run.corpus) for run in dev] == [40, 60, 50]
    assert {run.record.corpus for run in dev} == {"surrogate-dev"}
    assert [run.record.decoding for run in dev] == [run.record.decoding for run in made]

    def on_dev(runs: list[Predictions], tuned: list[Predictions]) -> set[tuple[str, float]]:
        chosen = chosen_thresholds(runs, tuned, draws=0).query("point == 'highest F1 on dev'")
        return {*zip(chosen["system"], chosen["threshold"], strict=True)}

    # Each system's threshold is that of its own dev run.
    alone = [on_dev([run], [other]) for run, other in zip(made, dev, strict=True)]
    assert on_dev(made, dev) == set().union(*alone)


def test_an_interrupted_or_unlike_repeat_is_left_out(
    surrogate: Corpus, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def repeat(number: int, most: int | None, **changes: Any) -> None:
        part = f"repeats/temperature-0.7/{number}/surrogate-test/smollm2-135m-tuned.jsonl"
        clone(SHIPPED / part, home / "runs" / part, most, **changes)

    repeat(1, None)
    repeat(2, 7)
    few = read_journal(
        SHIPPED / "repeats/temperature-0.7/3/surrogate-test/smollm2-135m-tuned.jsonl"
    )
    repeat(3, 9, dialogues=(few[0].dialogues or [])[:9])
    empty = home / "runs/repeats/temperature-0.7/4/surrogate-test/smollm2-135m-tuned.jsonl"
    empty.parent.mkdir(parents=True)
    empty.touch()
    found = repeated_runs(surrogate)
    assert {system: len(runs) for system, runs in found.items()} == {"temperature-0.7": 1}
    lines = capsys.readouterr().err.splitlines()
    for number, reason in ((2, "not finished"), (3, "other dialogues"), (4, "header")):
        assert any(f"/{number}/" in line and reason in line for line in lines)
