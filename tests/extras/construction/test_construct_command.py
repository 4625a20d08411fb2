"""``cradle construct``, started as a user starts it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pandas as pd
import pytest

from cradle_lib import load_corpus

from ...command import cradle

POSTS = [
    {"id": "a", "title": "T", "text": "A long week, and I am tired.", "labels": "no_crisis"},
    {"id": "b", "title": "T", "text": "I have been hurting myself.", "labels": "selfharm_ongoing"},
    {"id": "c", "title": "T", "text": "It was years ago.", "labels": "SI_passive_past"},
]


@pytest.fixture
def posts(tmp_path: Path) -> Path:
    pd.DataFrame(POSTS).to_csv(tmp_path / "posts.csv", index=False)
    return tmp_path / "posts.csv"


def construct(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return cradle("construct", *arguments)


def test_dialogues_are_written_and_checked(tmp_path: Path, posts: Path) -> None:
    out = tmp_path / "out"
    written = construct("write", "--posts", posts, "--kind", "annotated", "--out", out)
    assert written.returncode == 0, written.stderr
    assert "3 plans: 3 accepted, 0 rejected, 0 failed." in written.stdout
    assert len(load_corpus(out / "corpus.parquet")) == 3
    order = ("check", out / "corpus.parquet", "--kind", "annotated")
    assert construct(*order).returncode == 0
    copy = construct(*order, "--against", out / "corpus.parquet")
    assert copy.returncode == 1
    assert "near-duplicate" in copy.stdout


@pytest.mark.parametrize(
    "mistake", [("--kind", "other"), ("--writer", "keyword"), ("--posts", "none.csv")]
)
def test_errors_are_one_line_and_exit_2(tmp_path: Path, mistake: tuple[str, str]) -> None:
    found = construct("write", "--out", tmp_path, *mistake)
    assert found.returncode == 2, found.stdout + found.stderr
    assert found.stderr.startswith("error: ")
    assert "Traceback" not in found.stderr
