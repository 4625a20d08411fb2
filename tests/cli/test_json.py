"""Every command that prints numbers prints them as JSON too."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from cradle_lib.cli.main import CORE, app
from cradle_lib.detection import read_journal

from .in_process import invoke

#: What they print is text, a place, or the progress of what they do; `cluster` takes the options
#: of `infer`.
WITHOUT = {
    "annotate export",
    "cluster",
    "data convert",
    "data fetch",
    "fork",
    "prompts list",
    "prompts show",
}


def commands(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    own = group.commands or {name: each.load() for name, each in group.table.items()}
    for name, command in own.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*before, name))
        else:
            yield " ".join((*before, name)), command


def test_a_command_prints_json_or_no_numbers_and_has_at_most_ten_options() -> None:
    found = dict(commands(typer.main.get_command(app)))  # type: ignore[arg-type]
    silent = {
        name
        for name, command in found.items()
        if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert silent == WITHOUT
    # A number of anything is written with marks between its thousands.
    told = {name: inspect.getsource(found[name].callback) for name in silent}
    assert [name for name, source in told.items() if ":," in source] == []
    options = {
        name: [one.name for one in command.params if one.param_type_name == "option"]
        for name, command in found.items()
    }
    assert {name: names for name, names in options.items() if len(names) > 10} == {}


def test_help_lists_every_command_and_every_exit_status() -> None:
    said = " ".join(invoke().output.split())
    assert len(CORE) <= 12
    assert all(name.split()[0] in said for name, _ in commands(typer.main.get_command(app)))  # type: ignore[arg-type]
    for status in (
        "0 for success",
        "; 1 if a command",
        "; 2 if a command could not",
        "; 130 if interrupted",
    ):
        assert status in said


def test_what_is_printed_is_json_and_nothing_else(tiny: Path, tmp_path: Path) -> None:
    def cradle(*words: str | Path) -> Any:
        done = invoke(*words, "--json")
        assert done.exit_code == 0, (done.output, done.exception)
        return json.loads(done.stdout)

    journal = tmp_path / "run.jsonl"
    made = cradle("infer", "--model", "keyword", "--corpus", tiny, "--out", journal)
    assert made["outcomes"]["ok"] == made["turns"] == len(read_journal(journal)[1])
    counts = cradle("data", "check", tiny)["counts"]
    assert {item["name"]: item["found"] for item in counts}["dialogues"] == 3
    assert cradle("score", journal, "--corpus", tiny, "--draws", "5")["turn"]["turns"] == 6
    assert cradle("construct", "write", "--out", tmp_path / "c")["counts"]["accepted"] == 60
    cost = cradle("estimate", "--model", "gpt-5.1", "--corpus", tiny)
    assert cost["calls"] == 6
    assert 0 < cost["usual_cost"] < cost["highest_cost"] < 1
    said = tmp_path / "said"
    said.mkdir()
    (said / "one.txt").write_text("User: Hello.\nListener: Hi.\n", encoding="utf-8")
    collected = cradle("annotate", "collect", said, "--out", tmp_path / "mine.csv")
    assert (collected["dialogues"], collected["turns"]) == (1, 2)
    listed = {model["id"]: model["runs"] for model in cradle("models")["models"]}
    assert "surrogate-test" in listed["smollm2-135m"]
