"""``cradle construct``, started as a user starts it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from cradle_lib import load_corpus

from ...command import cradle
from ...detection.api.fault_server import FaultServer, chat
from .stub_writer import good, is_repair

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


def test_what_is_not_accepted_is_kept_and_told(tmp_path: Path, posts: Path) -> None:
    seen: list[dict[str, object]] = []

    def reply(attempt: int) -> tuple[int, dict[str, str], bytes]:
        prompt = str(seen[attempt]["messages"][0]["content"])  # type: ignore[index]
        text = good(prompt) if "long week" not in prompt or is_repair(prompt) else ""
        return chat(message={"content": "no" if "years ago" in prompt else text})

    out = tmp_path / "out"
    with FaultServer({"ok": reply}, seen) as server:
        order = ("write", "--posts", posts, "--out", out, "--writer", "openai:stub",
                 "--set", f"base_url={server.url}/ok/v1")  # fmt: skip
        first = construct(*order)
        calls = len(seen)
        again = construct(*order)
    assert (first.returncode, again.returncode) == (1, 1)
    assert "3 plans: 2 accepted, 1 rejected, 0 failed." in first.stdout
    # All is in the journal: nothing is asked a second time.
    assert calls == len(seen) == 6
    [rejected] = (out / "rejected.jsonl").read_text().splitlines()
    assert json.loads(rejected)["dialogue"] == "c"
    assert [attempt["text"] for attempt in json.loads(rejected)["attempts"]] == ["no", "no", "no"]


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
