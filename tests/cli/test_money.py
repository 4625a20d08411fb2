"""Estimates, cost limits and consent on the command line, without a network."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from cradle_lib import paths

from .conftest import Cradle


def test_an_estimate_needs_no_key_and_has_price_date_and_source(tiny: Path, cradle: Cradle) -> None:
    done = cradle("estimate", "--model", "gpt-5.1", "--corpus", tiny)
    assert done.returncode == 0, done.stderr
    assert "GPT-5.1 on tiny: 6 calls" in done.stdout
    assert "Cost: about $0." in done.stdout
    assert "; at most $0." in done.stdout
    assert "Prices of 2026-11-22: https://developers.openai.com/" in done.stdout


def test_an_estimate_without_prices_has_no_cost(tiny: Path, cradle: Cradle) -> None:
    done = cradle("estimate", "--model", "qwen3-32b-vllm", "--corpus", tiny, "--set", "limit=1")
    assert done.returncode == 0, done.stderr
    assert "in models.yml has no prices" in done.stdout
    assert "$" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("estimate", "--model", "gpt5.1"), "Did you mean 'gpt-5.1'"),
        (("estimate", "--model", "gpt-5.1", "--set", "history=mine"), "no history 'mine'"),
        (("infer", "--model", "keyword", "--max-cost", "1"), "--max-cost needs prices"),
        (("infer", "--model", "gpt-5.1", "--max-cost", "0.000001"), "one more may cost $0.0"),
        (
            ("infer", "--model", "gpt-5.1"),
            "at most. Send it? There is no terminal to ask on: agree with --yes.",
        ),
        (("infer", "--model", "claude-5.5-sonnet", "--yes"), "ANTHROPIC_API_KEY is not set"),
    ],
)
def test_errors_are_one_line_and_exit_status_2(
    tiny: Path,
    tmp_path: Path,
    cradle: Cradle,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    expected: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-1")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    place = ("--corpus", tiny, *(("--out", tmp_path / "runs") if "infer" in arguments else ()))
    agreed = ("--yes",) if "--max-cost" in arguments else ()
    done = cradle(*arguments, *place, *agreed)
    assert done.returncode == 2, done.stdout + done.stderr
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert "sk-planted-1" not in done.stdout + done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    answers = [path.read_text() for path in tmp_path.rglob("*.jsonl")]
    assert all(json.loads(line).keys() == {"record", "identity"} for line in answers)


def test_the_consent_question_names_text_and_host(tiny: Path, tmp_path: Path) -> None:
    # A pseudo-terminal, because the question is only asked on a terminal.
    ours, theirs = pty.openpty()
    os.write(ours, b"n\n")
    start = [sys.executable, "-c", "from cradle_lib.cli import main; main()"]
    done = subprocess.run(
        [*start, "infer", "--model", "gpt-5.1", "--corpus", str(tiny), "--out", str(tmp_path)],
        stdin=theirs,
        capture_output=True,
        text=True,
        check=False,
        cwd=paths.ROOT,
        env=os.environ | {"OPENAI_API_KEY": "sk-planted-1", "COLUMNS": "200"},
    )
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2, done.stdout + done.stderr
    asked = (
        "The text of 3 dialogues of tiny will be sent to api.openai.com (GPT-5.1). It can cost $0."
    )
    assert asked in done.stderr
    assert "was not agreed to" in done.stderr
    assert not list(tmp_path.rglob("*.jsonl"))
