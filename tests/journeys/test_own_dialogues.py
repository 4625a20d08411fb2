"""Twelve dialogues of a user become a corpus, a run, a score and a page."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .checkout import Checkout

SAID = ["The bus was late again.", "I cry at my desk most days.", "Thanks, that is all."]
HEARD = ["That is annoying.", "Since when?", "Take care."]
LABELS = ["", "alert_ongoing", ""]


def chat_messages(labelled: bool) -> str:
    """Twelve lines of chat messages."""
    lines = []
    for number in range(12):
        messages = []
        for said, label, heard in zip(SAID, LABELS, HEARD, strict=True):
            labels = {"labels": label} if labelled else {}
            messages.append({"role": "user", "content": f"{said} Day {number}."} | labels)
            messages.append({"role": "assistant", "content": heard})
        lines.append(json.dumps({"messages": messages}))
    return "\n".join(lines)


def table(labelled: bool) -> str:
    """A table with one row for each turn."""
    text = io.StringIO()
    rows = csv.writer(text, delimiter=";")
    rows.writerow(["Session ID", "Speaker", "Text", *["Labels"][: int(labelled)]])
    for number in range(12):
        for said, label, heard in zip(SAID, LABELS, HEARD, strict=True):
            rows.writerow([f"s{number}", "Client", said, *[label][: int(labelled)]])
            rows.writerow([f"s{number}", "Counselor", heard, *[""][: int(labelled)]])
    return text.getvalue()


def transcript(labelled: bool) -> str:
    """Transcripts, which have no labels, separated by blank lines."""
    one = "\n".join(f"Anna: {s}\nDr. B: {h}" for s, h in zip(SAID, HEARD, strict=True))
    return "\n\n".join([one] * 12)


@pytest.mark.parametrize(
    ("name", "make", "labelled", "options"),
    [
        ("chat.jsonl", chat_messages, False, ""),
        ("chat.jsonl", chat_messages, True, ""),
        ("sessions.csv", table, False, ""),
        ("sessions.csv", table, True, ""),
        ("interviews.txt", transcript, False, "--user Anna"),
    ],
)
def test_own_dialogues_are_converted_run_and_scored(
    built: Checkout,
    tmp_path: Path,
    name: str,
    make: Callable[[bool], str],
    labelled: bool,
    options: str,
) -> None:
    source, corpus = tmp_path / name, tmp_path / "own.csv"
    source.write_text(make(labelled), encoding="utf-8")
    built.run(f".venv/bin/cradle data convert {source} --out {corpus} {options}")
    out = tmp_path / "run.jsonl"
    built.run(f".venv/bin/cradle infer --model keyword --corpus {corpus} --out {out}")
    printed = built.run(f".venv/bin/cradle score {out} --corpus {corpus}")
    assert ("micro f1" in printed) == labelled, printed
    assert ("per 100 user turns" in printed) != labelled, printed


def test_a_page_is_about_own_dialogues(built: Checkout, tmp_path: Path) -> None:
    """A book about own dialogues with labels is built in the test of own models."""
    (tmp_path / "talks.jsonl").write_text(chat_messages(labelled=False), encoding="utf-8")
    corpus = tmp_path / "talks.csv"
    built.run(f".venv/bin/cradle data convert {tmp_path}/talks.jsonl --out {corpus}")
    built.run(f".venv/bin/cradle infer --model keyword --corpus {corpus}")
    page = tmp_path / "results.ipynb"
    built.run(f".venv/bin/papermill notebooks/results.ipynb {page} -p corpus {corpus}")
    text = page.read_text("utf-8")
    assert "Keyword lexicon" in text
    # Without gold labels no score is shown.
    assert "No user turn of talks has a gold label" in text
