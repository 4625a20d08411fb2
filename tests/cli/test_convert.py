"""Commands on a user's own file: conversion, predictions without gold labels, and a bundle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cradle_lib.corpus import load_corpus
from cradle_lib.errors import CorpusError

from .in_process import invoke

CHAT = [
    [("user", "I have been hurting myself again."), ("assistant", "Thank you for telling me.")],
    [("user", "The bus was late."), ("assistant", "Oh."), ("user", "I used to cut myself.")],
]


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    path = tmp_path / "chat.jsonl"
    items = [{"messages": [{"role": r, "content": c} for r, c in turns]} for turns in CHAT]
    path.write_text("\n".join(map(json.dumps, items)))
    return path


def test_a_file_is_converted_and_its_interpretation_is_printed(chat: Path, tmp_path: Path) -> None:
    out = tmp_path / "corpus.csv"
    done = invoke("data", "convert", chat, "--out", out)
    assert done.exit_code == 0, done.output
    for words in ("chat messages", "utf-8", "3 by user", "2 by assistant", "2, named by their"):
        assert words in done.stdout
    assert CHAT[0][0][1] not in done.stdout
    assert f"--corpus {out}" in done.stdout.replace("\n", "")
    assert len(load_corpus(out)) == 2
    chat.write_text(chat.read_text().replace('"user"', '"Anna"').replace('"assistant"', '"Ben"'))
    refused = invoke("data", "convert", chat, "--out", tmp_path / "x.csv")
    assert isinstance(refused.exception, CorpusError)
    assert "--user NAME" in str(refused.exception)


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("session,text\na,SH_past\n", ["--single"], 1),
        ("id,post,code\na,Hi,SH_past\n", ["--single", "--text", "post", "--labels", "code"], 1),
        ("id,post,code\na,Hi,SH_past\n", ["--single", "--text", "post", "--no-labels"], 1),
        ("speaker,text,nr\nuser,a,2\nbot,b,1\n", ["--dialogue", "file", "--order", "nr"], 2),
        ('session,text\na,User: a\na,"User: a\nBot: b"\n', ["--cumulative"], 2),
        ('session,text\na,User: a\na,"User: a\nBot: b"\n', ["--no-cumulative"], 1),
        ('{"a": [{"role": "user", "content": "b"}], "c": []}', ["--messages", "a"], 1),
        ("session,text\na,Hi\n", ["--labels", "text", "--no-labels"], None),
    ],
)
def test_options_decide(
    content: str, options: list[str], expected: int | None, tmp_path: Path
) -> None:
    path, out = tmp_path / "x.csv", tmp_path / "out.csv"
    path = path.with_suffix(".json") if content.startswith("{") else path
    path.write_text(content)
    done = invoke("data", "convert", path, "--out", out, *options)
    if expected is None:
        assert "exclude each other" in str(done.exception)
    else:
        assert done.exit_code == 0, done.exception
        assert len(load_corpus(out).turns) == expected


def test_without_gold_labels_score_counts_the_predictions(chat: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.csv"
    invoke("data", "convert", chat, "--out", corpus)
    invoke("infer", "--model", "keyword", "--corpus", corpus, "--out", tmp_path / "runs")
    journal = tmp_path / "runs" / "corpus" / "keyword.jsonl"
    done = invoke("score", journal, "--corpus", corpus)
    assert done.exit_code == 0, done.output
    assert "there is nothing to score against" in done.stdout
    assert "F1" not in done.stdout
    content = json.loads(invoke("score", journal, "--corpus", corpus, "--json").stdout)
    # Recounted from the journal.
    lines = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
    answers = [[] if line["labels"] == "none" else line["labels"].split("; ") for line in lines]
    assert len(answers) == content["turns"] == content["of_turns"] == 3
    rates = {row["label"]: row for row in content["predicted"]}
    assert rates["any label"]["turns"] == sum(bool(labels) for labels in answers) > 0
    for label, row in rates.items():
        if label != "any label":
            assert row["turns"] == sum(label in labels for labels in answers) > 0
        assert row["per_100"] == pytest.approx(100 * row["turns"] / 3)
    assert set(rates) - {"any label"} == {label for labels in answers for label in labels}
    bundled = invoke("bundle", journal, "--corpus", corpus, "--out", tmp_path / "keyword.zip")
    assert bundled.exit_code == 0, bundled.exception
    shown = invoke("score", tmp_path / "keyword.zip", "--corpus", corpus)
    assert shown.stdout == done.stdout
