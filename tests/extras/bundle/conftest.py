"""Fixtures: two dialogues, and a run of the keyword baseline over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import find_model, load_registry
from cradle_lib.detection.runs.run import run

LINES = [
    "turn_id,text,labels",
    "0,User: I passed my exam!,none",
    "1,Listener: Well done.,none",
    "2,User: I have been hurting myself again.,confirm_SH_ongoing",
    "3,User: The bus was late.,none",
    "0,User: I have been hurting myself again.,confirm_SH_ongoing",
    "1,User: Hello once more.,none",
]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    path = tmp_path / "tiny.csv"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return load_corpus(path)


@pytest.fixture
def journal(corpus: Corpus, tmp_path: Path) -> Path:
    return run(find_model("keyword", load_registry()), corpus, out=tmp_path / "runs")
