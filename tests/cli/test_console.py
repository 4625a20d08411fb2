"""Output of commands: escape sequences, long texts, tables, and names with markup."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from cradle_lib.cli.commands import models
from cradle_lib.cli.console import err, interval_note, out, percent, print_table
from cradle_lib.detection import load_registry
from cradle_lib.detection.models import registry

from .conftest import Cradle
from .in_process import invoke

NAME = r"onerror=alert(1) $x_1$ [/x] [red]x[/red] :bomb: {{evil}} `*_|\#\`"


def test_output_is_escaped_and_truncated(capsys: pytest.CaptureFixture[str]) -> None:
    out.print("\x1b[2J\x9b1m\u202ename")
    err.print("x" * 20_000_000)
    shown = capsys.readouterr()
    assert shown.out == "\\x1b[2J\\x9b1m\\u202ename\n"
    assert len(shown.err) < 3_000


def test_escape_sequences_in_an_argument_are_escaped_in_messages(cradle: Cradle) -> None:
    done = cradle("data", "check", "\x1b]0;t\x07 [red].csv")
    assert done.returncode == 2
    assert done.stderr == "error: \\x1b]0;t\\x07 [red].csv: no such file. Check the path.\n"


def test_cells_of_tables_are_neither_wrapped_nor_truncated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(out, "width", 40)
    long = "a name of more than forty letters in several words"
    print_table([{"name": long, "count": 1234, "more": long}], "Title", "Caption")
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert [lines[0], lines[-1]] == ["Title", "Caption"]
    assert [cell.strip() for cell in lines[-2].split("  ")] == [long, "1,234", long]


def test_markup_is_not_interpreted(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = {m.id: m.model_copy(update={"name": NAME}) for m in load_registry().values()}
    for module in (models, registry):
        monkeypatch.setattr(module, "load_registry", lambda: entries)
    assert invoke("models").stdout.count(NAME) == len(entries)
    corpus = tiny.rename(tiny.with_name("[red] $y$.csv"))
    made = []
    for model in ("always-none", "keyword"):
        made.append(tmp_path / "[/runs]" / f"{model}.jsonl")
        done = invoke("infer", "--model", model, "--corpus", corpus, "--out", made[-1])
        assert str(made[-1]) in done.stdout
    assert NAME in invoke("score", made[1], "--corpus", corpus, "--draws", "5").stdout
    compared = invoke("compare", *made, "--corpus", corpus, "--permutations", "5")
    # Runs with equal names are named by their files.
    assert f"Against {made[0]}" in compared.stdout


@pytest.mark.parametrize(
    ("parts", "digits", "expected"),
    [
        ((0.0625, 0.0, 0.062504), 2, "6.25 [0.00, 6.25]"),
        ((0.7594, 0.433, 0.75944), 1, "75.9 [43.3, 75.9]"),
        ((0.7594, math.nan, math.nan), 2, "75.94 [-]"),
        ((0.7594,), 2, "75.94"),
        ((math.nan, 0.1, 0.2), 2, "n/a"),
    ],
)
def test_a_share_and_its_interval_have_equal_digits(
    parts: tuple[float, ...], digits: int, expected: str
) -> None:
    shown = percent(*parts, digits=digits)
    assert shown == expected
    assert (interval_note([{"turn": shown}]) is not None) == ("[-]" in expected)
