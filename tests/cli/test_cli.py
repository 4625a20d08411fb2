"""The commands ``infer``, ``score``, ``join`` and ``data check``."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cradle_lib import labels, paths
from cradle_lib.detection import Answer, Outcome, read_journal
from cradle_lib.detection.baselines.always_none import AlwaysNone
from cradle_lib.errors import CradleError
from cradle_lib.published import published_label_counts

from .conftest import Cradle
from .in_process import invoke

OWN = """\
turn_id,text,labels,dialogue_id,scenario
0,User: I passed my exam!,none,talk-1,S2
1,- never,alert_past,talk-1,S2
2,User: I have been hurting myself again.,confirm_SH_ongoing,talk-1,S2
0,User: The bus was late.,none,talk-2,S4
0,Listener: Well.,none,talk-3,S4
"""
FAILED = Answer("", Outcome.FAILED, "HTTP 500")
Infer = Callable[..., Any]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.csv"
    path.write_text(OWN, encoding="utf-8")
    return path


@pytest.fixture
def infer(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Infer:
    """A function that runs ``cradle infer`` with answers to first and later turns."""

    def infer(first: Answer, later: Answer, *arguments: str | Path) -> Any:
        monkeypatch.setattr(
            AlwaysNone, "reply", lambda self, prompt: later if prompt.turn else first
        )
        place = ("--corpus", own, "--out", tmp_path / "runs")
        return invoke("infer", "--model", "always-none", *place, *arguments)

    return infer


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "own" / "always-none.jsonl"


@pytest.mark.parametrize(
    ("first", "later", "status", "expected"),
    [
        (Answer("none"), Answer("none"), 0, "3 ok, 0 unparsed, 0 refused, 0 failed."),
        (Answer("Hm."), Answer("Hm."), 1, "0 ok, 3 unparsed, 0 refused, 0 failed."),
        (Answer("none"), FAILED, 1, "2 ok, 0 unparsed, 0 refused, 1 failed."),
        (Answer("none"), Answer("", Outcome.REFUSED), 0, "1 refused"),
        (Answer("- none"), Answer("none"), 0, "2 needed cleaning, such as removing Markdown."),
    ],
)
def test_a_run_prints_its_outcomes_and_the_next_command(
    infer: Infer, first: Answer, later: Answer, status: int, expected: str
) -> None:
    done = infer(first, later)
    assert done.exit_code == status, done.output
    assert expected in done.stdout
    if later is FAILED:
        assert "The same command repeats the failed questions." in done.stderr
        assert "HTTP 500" in done.stderr
    if status == 0:
        words = shlex.split(done.stdout.partition("Next: cradle ")[2])
        scored = invoke(*words, "--draws", "5")
        assert scored.exit_code == 0, scored.exception
        assert ("needed cleaning" in scored.stdout) is ("cleaning" in expected)


BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    "typed", ["cradle", ".venv/bin/cradle", ".venv/bin/python -m cradle_lib.cli"]
)
def test_printed_commands_and_paths_work_where_a_command_was_typed(
    tmp_path: Path, typed: str
) -> None:
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (tmp_path / "own.csv").write_text(OWN, encoding="utf-8")
    environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}

    def enter(command: str) -> str:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    shown = enter(f"{typed} infer --model always-none --corpus own.csv --out 'my runs'")
    assert "Journal: my runs/own/always-none.jsonl" in shown
    following = shown.partition("Next: ")[2].strip()
    assert following.startswith(f"{typed} score ")
    assert "3 of 3 user turns" in enter(following)


def test_the_suggested_command_after_shards_works(infer: Infer, journal: Path) -> None:
    for shard in ("0/2", "1/2"):
        done = infer(Answer("none"), Answer("none"), "--shard", shard)
        assert "Next, when all 2 shards are made: cradle score" in done.stdout
    scored = invoke(*shlex.split(done.stdout.partition("are made: cradle ")[2]))
    assert "3 of 3 user turns" in scored.stdout
    joined = invoke("join", journal, "--corpus", done.stdout.split("--corpus ")[1].split()[0])
    assert joined.exit_code == 0, joined.exception
    assert len(read_journal(journal)[1]) == 3


def test_a_partial_run_is_refused_unless_asked_for(infer: Infer, own: Path, journal: Path) -> None:
    part = infer(Answer("none"), Answer("none"), "--set", "limit=1")
    refused = invoke("score", journal, "--corpus", own)
    assert isinstance(refused.exception, CradleError)
    assert "2 of 3 user turns" in str(refused.exception)
    scored = invoke(*shlex.split(part.stdout.partition("Next: cradle ")[2]))
    assert "2 of 3 user turns" in scored.stdout


@pytest.mark.parametrize("orphans", ["ignore", "attach", "count"])
@pytest.mark.parametrize("on_user_turn", [True, False])
def test_labels_outside_user_turns_are_scored_or_named(
    infer: Infer, own: Path, journal: Path, orphans: str, on_user_turn: bool
) -> None:
    if not on_user_turn:
        # The only label is then an alert on a continuation row.
        own.write_text(OWN.replace("confirm_SH_ongoing", "none"), encoding="utf-8")
    infer(Answer("alert_past"), Answer("none"))
    options = ("--corpus", own, "--draws", "0", "--convention", f"orphans={orphans}")
    shown = invoke("score", journal, *options).stdout
    ignored = orphans == "ignore"
    unscored = ignored and not on_user_turn
    assert ("there is nothing to score against" in shown) is unscored
    assert ("micro f1" in shown) is not unscored
    assert ("1 gold label is not on user turns" in shown) is (ignored and on_user_turn)
    assert ("no score at level turn" in shown) is False
    assert ("no score at level confirm" in shown) is not (on_user_turn or unscored)


def test_conventions_can_be_set_and_are_in_the_signature(
    infer: Infer, own: Path, journal: Path
) -> None:
    infer(Answer("none"), Answer("Well, hm."))

    def exact_match(*conventions: str) -> tuple[float | None, str]:
        options = [part for pair in conventions for part in ("--convention", pair)]
        done = invoke("score", journal, "--corpus", own, "--json", "--draws", "0", *options)
        turn = json.loads(done.stdout)["turn"]
        [row] = [row for row in turn["scores"] if row["score"] == "exact_match"]
        return row["value"], turn["signature"]

    # Two turns without gold labels are answered with `none`. The unusable answer is to the turn
    # with the only gold label; without that turn there is no score.
    assert exact_match()[0] == pytest.approx(2 / 3)
    excluded, signature = exact_match("unparsed=exclude", "empty_jaccard=0")
    assert excluded is None
    assert "unparsed:exclude" in signature
    assert "empty:0" in signature
    for wrong, message in (
        ("colour=red", "no convention 'colour'. Choose one of empty_jaccard"),
        ("unparsed=maybe", "Choose one of miss, none, exclude"),
        ("zero_division=high", "between 0 and 1"),
    ):
        done = invoke("score", journal, "--corpus", own, "--convention", wrong)
        assert message in str(done.exception)


def test_data_check_finds_all_published_counts_in_the_surrogate() -> None:
    done = invoke("data", "check", "data/surrogate/test.parquet")
    assert done.exit_code == 0, done.output
    assert "All counts are those of the published test split." in done.stdout
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.split()}
    for label, count in published_label_counts().items():
        assert rows[label] == [str(count)] * 2
    assert len(published_label_counts()) == len(labels.LABELS)


def test_data_check_compares_other_corpora_with_the_paper_only_on_request(own: Path) -> None:
    done = invoke("data", "check", own)
    assert done.exit_code == 0, done.output
    assert "published" not in done.stdout.lower()
    lines = done.stdout.splitlines()
    rows = {line.rpartition("  ")[0].strip(): line.split()[-1:] for line in lines}
    assert (rows["user turns"], rows["confirm_SH_ongoing"]) == (["3"], ["1"])
    # One of the labels is on a row where no model is asked.
    assert int(rows["labels"][0]) == sum(int(rows[label][0]) for label in labels.LABELS) + 1
    for part in (
        "`labels` counts all rows, single labels count user turns",
        "Dialogues by scenario: S2 1, S4 2.",
        "dialogues without a user turn, where no model is asked (1, the first: talk-3)",
        "rows without a speaker, which continue the row above (1, the first: talk-1, turn 1)",
        "labels on rows where no model is asked (1, the first: talk-1, turn 1)",
    ):
        assert part in done.stdout
    assert "exam" not in done.stdout
    asked = invoke("data", "check", own, "--paper")
    assert asked.exit_code == 1
    assert "dialogues differs by -597." in asked.stdout


def test_data_check_counts_dialogues_of_the_release_without_a_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RELEASE", tmp_path)
    rows = [(0, "alert_past"), (0, "none"), *((n, "none") for n in range(6)), (6, "alert_past")]
    lines = [f"{turn},User: Hello.,{labels}" for turn, labels in rows]
    table = "\n".join(["turn_id,text,labels", *lines])
    pd.read_csv(io.StringIO(table)).to_parquet(tmp_path / "test.parquet")
    checked = invoke("data", "check", "hub")
    assert "Dialogues by timing: early 1, late 1, no label 1." in checked.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("data check absent.csv", "absent.csv: no such file. Check the path."),
        ("score absent.jsonl", "absent.jsonl"),
        ("score a.zip b.jsonl", "Score bundles"),
        ("prompts show absent", "no prompt template 'absent'"),
        ("estimate --model gpt5.1", "Did you mean 'gpt-5.1'"),
        ("infer --model keyword --set history=mine", "no history 'mine'"),
        ("infer --model keyword --shard 4/4", "expected i/n"),
        ("infer --model keyword --yes --max-cost 1", "--max-cost needs prices"),
        ("infer --model gpt-5.1 --yes --max-cost 0.000001", "one more may cost $0.0"),
        (
            "infer --model gpt-5.1",
            "at most. Send it? There is no terminal to ask on: agree with --yes.",
        ),
        ("infer --model claude-5.5-sonnet --yes", "ANTHROPIC_API_KEY is not set"),
    ],
)
def test_an_error_is_one_line_with_exit_status_2_and_nothing_is_asked(
    arguments: str,
    expected: str,
    own: Path,
    tmp_path: Path,
    cradle: Cradle,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-1")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    place = ["--corpus", own] if "--model" in arguments else []
    place += ["--out", tmp_path / "runs"] if "infer" in arguments else []
    done = cradle(*arguments.split(), *place)
    assert done.returncode == 2, done.stdout + done.stderr
    assert expected in done.stderr
    assert "sk-planted-1" not in done.stdout + done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    answers = [path.read_text() for path in tmp_path.rglob("*.jsonl")]
    assert all(json.loads(line).keys() == {"record", "identity"} for line in answers)
