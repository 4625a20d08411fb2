"""A run that is interrupted or killed goes on with the same command, and asks nothing twice."""

from __future__ import annotations

import itertools
import json
import signal
import threading
from pathlib import Path

import pytest

from ..loopback import Loopback
from .checkout import Checkout
from .service import Service


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_goes_on(built: Checkout, tmp_path: Path, sent: signal.Signals) -> None:
    journal = tmp_path / "toy.jsonl"
    answered, signalled = threading.Event(), threading.Event()
    state = {"busy": answered, "goes_on": signalled, "answers": itertools.count(1)}
    kind = type("Fresh", (Service,), state)
    with Loopback(kind) as service:
        command = (
            f".venv/bin/cradle infer --model openai:toy --sample 40 --out {journal} "
            f"--set base_url={service.url}/v1"
        )
        code, printed = built.interrupt(
            command, lambda _: answered.wait(), sent, after=signalled.set
        )
        assert code != 0
        assert "Traceback" not in printed
        kept = _answers(journal)
        assert kept
        built.run(command)
    lines = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]
    asked = [(line["dialogue"], line["turn"]) for line in lines if "answer" in line]
    assert len(asked) == len({*asked}) > kept


def _answers(journal: Path) -> int:
    return journal.read_text("utf-8").count('"answer"') if journal.exists() else 0
