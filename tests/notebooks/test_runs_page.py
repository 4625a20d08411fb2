"""The page of all runs: an answer that could not be used is never counted as *none*."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cradle_lib
from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.detection.run import run_model
from cradle_lib.display.table import Table

from .test_notebooks import file, runs_folder, show

__all__ = ["file", "runs_folder"]  # fixtures
MODELS = ["smollm2-135m", "smollm2-135m-tuned"]
NAMES = ["SmolLM2-135M-Instruct", "SmolLM2-135M, tuned"]


def captioned(shown: list[Any], start: str) -> list[Table]:
    """The tables whose captions begin so."""
    tables = [item for item in shown if isinstance(item, Table)]
    return [table for table in tables if table.caption.startswith(start)]


def cells(table: Table) -> dict[str, list[str]]:
    return {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}


@pytest.fixture(scope="module")
def journals() -> dict[str, list[dict[str, Any]]]:
    """The answers of the two runs, one for each user turn, read without the library."""
    found = {}
    for model, name in zip(MODELS, NAMES, strict=True):
        text = (paths.SHIPPED_RUNS / "surrogate-test" / f"{model}.jsonl").read_text("utf-8")
        _header, *lines = [json.loads(line) for line in text.splitlines()]
        found[name] = list({(line["dialogue"], line["turn"]): line for line in lines}.values())
    return found


def test_unusable_answers_are_a_category_of_their_own(
    journals: dict[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = show("runs", {"models": MODELS}, monkeypatch)
    [table] = captioned(shown, "Answers of each system")
    headline = shown[-1].message
    for name, lines in journals.items():
        outcomes = Counter(line["outcome"] for line in lines)
        ok = [line for line in lines if line["outcome"] == "ok"]
        none = sum(line["labels"] == "none" for line in ok)
        counts = [len(lines), len(ok) - none, none, *(outcomes[o] for o in OTHERS)]
        assert cells(table)[name][:-1] == [f"{count:,}" for count in counts]
        unusable = len(lines) - len(ok)
        [answers] = captioned(shown, f"Answers of {name}:")
        sets = cells(answers)
        assert sets.get("unusable answer", ["0", "0"]) == [f"{unusable:,}", "0"]
        assert sets.get("none", ["0"])[0] == f"{none:,}"
        assert (f"{name} ({unusable:,} of {len(lines):,})" in headline) == (unusable > 0)


OTHERS = ("unparsed", "refused", "failed")


def test_time_and_tokens_are_those_of_the_journals(
    journals: dict[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = show("runs", {"models": MODELS}, monkeypatch)
    [table] = captioned(shown, "Time, tokens")
    for name, lines in journals.items():
        tokens = [sum(line[f"tokens_{end}"] for line in lines) for end in ("in", "out")]
        seconds = sum(line["seconds"] for line in lines) / len(lines)
        found = cells(table)[name]
        assert found[:2] == [f"{len(lines):,}", f"{tokens[0]:,}"]
        assert f"{tokens[1]:,}" in found
        assert f"{seconds:.3f}" in found


def test_identical_systems_are_one_row_and_each_has_its_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    twins = ["smollm2-135m-tuned", "smollm2-135m-tuned-constrained"]
    shown = show("runs", {"models": twins}, monkeypatch)
    [table] = captioned(shown, "Answers of each system")
    assert [*cells(table)] == ["SmolLM2-135M, tuned (= constrained)"]
    records = [table.caption for table in captioned(shown, "Record of")]
    names = ["SmolLM2-135M, tuned", "SmolLM2-135M, tuned, constrained"]
    assert records == [f"Record of the run of {name}." for name in names]


def test_answers_that_needed_cleaning_are_counted(
    file: Path, runs_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RUNS", runs_folder)
    run = run_model("always-none", load_corpus(file))
    values = {"models": ["always-none"], "corpus": str(file)}

    def page(answers: tuple[str, ...]) -> str:
        changed = replace(run, answers=answers)
        monkeypatch.setattr(cradle_lib, "default_runs", lambda *_: [changed], raising=False)
        shown = show("runs", values, monkeypatch)
        return " ".join(item._repr_html_() for item in shown if item is not None)

    assert "Parsed answers in another format than the prompt asks for: 0." in page(run.answers)
    assert "Parsed answers in another format than the prompt asks for: 2." in page(
        ("None.", "- none", *run.answers[2:])
    )
