"""JSON output, number of options, and help of commands."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from cradle_lib import corpus as corpora
from cradle_lib.cli.main import CORE, app
from cradle_lib.detection import read_journal

from ..notebooks.tiny_corpora import write
from .conftest import Cradle
from .in_process import invoke

#: Commands without `--json`: they print texts, paths or progress. `cluster` passes options to
#: `infer`.
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


def test_commands_with_numbers_have_json_and_no_command_has_over_ten_options() -> None:
    found = dict(commands(typer.main.get_command(app)))  # type: ignore[arg-type]
    without_json = {
        name
        for name, command in found.items()
        if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert without_json == WITHOUT
    options = {
        name: [one.opts[0] for one in command.params if one.param_type_name == "option"]
        for name, command in found.items()
    }
    # A file that leaves something open is refused with the option that decides. Nobody has to
    # find these options in the help, so they do not count. Pairs such as `--column text=NAME` would
    # be fewer options with as many choices.
    folder = Path(inspect.getfile(corpora)).parent
    messages = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    convert = options["data convert"]
    options["data convert"] = [one for one in convert if not re.search(rf"{one}\b", messages)]
    assert options["data convert"] == ["--consecutive"]
    assert {name: names for name, names in options.items() if len(names) > 10} == {}


def test_help_lists_every_command_and_every_exit_status() -> None:
    help_text = " ".join(invoke().output.split())
    assert len(CORE) <= 12
    assert all(name.split()[0] in help_text for name, _ in commands(typer.main.get_command(app)))  # type: ignore[arg-type]
    for status in (
        "0 for success",
        "; 1 if a command",
        "; 2 if a command could not",
        "; 130 if interrupted",
    ):
        assert status in help_text


def test_commands_on_one_dialogue_print_a_result_or_json_and_nothing_else(
    tmp_path: Path, cradle: Cradle
) -> None:
    def read(*words: str | Path) -> Any:
        """Runs a command with and without `--json`; returns the JSON."""
        plain, done = cradle(*words), cradle(*words, "--json")
        assert (plain.returncode, plain.stderr.strip(), done.returncode) == (0, "", 0), words
        # `infer` reports its outcomes there.
        assert done.stderr == "" or words[0] == "infer"
        return json.loads(done.stdout)

    corpus = write("one dialogue", tmp_path)
    over = ("--corpus", corpus)
    journals = [tmp_path / f"{model}.jsonl" for model in ("keyword", "always-none")]
    for journal in journals:
        made = read("infer", "--model", journal.stem, *over, "--out", journal)
        assert made["outcomes"]["ok"] == made["turns"] == len(read_journal(journal)[1]) == 3
    counts = read("data", "check", corpus)["counts"]
    assert {item["name"]: item["found"] for item in counts}["dialogues"] == 1
    assert read("score", journals[0], *over, "--draws", "50")["turn"]["turns"] == 3
    assert read("compare", *journals, *over, "--permutations", "50")["differences"]
    cost = read("estimate", "--model", "gpt-5.1", *over)
    assert cost["calls"] == 3
    assert 0 < cost["usual_cost"] < cost["highest_cost"] < 1
    listed = {model["id"]: model["runs"] for model in read("models")["models"]}
    assert "surrogate-test" in listed["smollm2-135m"]
