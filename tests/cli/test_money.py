"""Estimates, cost limits and consent on the command line, without a network."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

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
