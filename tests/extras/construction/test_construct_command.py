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


def test_a_plan_is_written_changed_by_hand_followed_and_checked(
    tmp_path: Path, posts: Path
) -> None:
    plans = tmp_path / "plans.csv"
    made = construct("plan", "--posts", posts, "--kind", "annotated", "--out", plans)
    assert made.returncode == 0, made.stderr
    frame = pd.read_csv(plans, dtype=str, keep_default_na=False)
    frame.loc[0, "scenario"] = "S6"
    frame.loc[0, "rows"] = "ULULULULULU"
    frame.to_csv(plans, index=False)
    out = tmp_path / "out"
    written = construct("write", "--posts", posts, "--plans", plans, "--out", out)
    assert written.returncode == 0, written.stderr
    assert "3 plans: 3 accepted, 0 rejected, 0 failed." in written.stdout
    assert "Next: cradle annotate export --corpus" in written.stdout
    corpus = load_corpus(out / "corpus.parquet")
    assert corpus.meta["scenario"][0] == "S6"
    assert len(corpus.dialogues[0].turns) == 11
    order = ("check", out / "corpus.parquet", "--kind", "annotated")
    assert construct(*order).returncode == 0
    copy = construct(*order, "--against", out / "corpus.parquet")
    assert copy.returncode == 1
    assert "near-duplicate" in copy.stdout


def test_errors_are_one_line_and_exit_2(tmp_path: Path, posts: Path) -> None:
    for arguments in (
        ("plan", "--posts", tmp_path / "none.csv", "--out", tmp_path / "p.csv"),
        ("plan", "--posts", posts, "--kind", "other", "--out", tmp_path / "p.csv"),
        ("write", "--posts", posts, "--out", tmp_path / "o", "--writer", "keyword"),
        ("write", "--posts", posts, "--out", tmp_path / "o", "--plans", posts),
        ("check", tmp_path / "none.parquet"),
    ):
        found = construct(*arguments)
        assert found.returncode == 2, found.stdout + found.stderr
        assert found.stderr.startswith("error: ")
        assert "Traceback" not in found.stderr
