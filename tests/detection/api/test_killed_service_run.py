"""A run against a service, interrupted and killed: nothing paid for is lost or asked twice."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from cradle_lib.detection import read_journal
from cradle_lib.detection.run import run

from .fault_server import FaultServer, Reply, chat
from .killed_service_run import CORPUS, TURNS, make_model

SCRIPT = Path(__file__).with_name("killed_service_run.py")
ANSWERS = ("none", "alert_ongoing", "something else", "confirm_SH_past; confirm_DV_past")
CONCURRENCY = 8


def test_a_run_that_was_interrupted_and_killed_ends_like_one_that_was_not(
    tmp_path: Path, service: FaultServer
) -> None:
    asked: list[str] = []
    running: list[subprocess.Popen[str]] = []
    # One for each start, sent with its fifth call.
    signals = [signal.SIGINT, signal.SIGKILL]
    last = 5

    def answer(text: str) -> str:
        # Answers follow from texts, so that a model's own earlier tags matter.
        return ANSWERS[hashlib.sha256(text.encode()).digest()[0] % len(ANSWERS)]

    def reply(attempt: int) -> Reply:
        text = service.seen[attempt]["messages"][0]["content"]
        asked.append(hashlib.sha256(text.encode()).hexdigest()[:16])
        if signals and len(asked) == last:
            os.kill(running[-1].pid, signals.pop(0))
        return chat(message={"content": answer(text)})

    def start() -> tuple[int, str]:
        """Runs the command to its end; gives its exit status and what it said."""
        command = [sys.executable, SCRIPT, f"{service.url}/{name}/v1", str(tmp_path)]
        environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[3])}
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, env=environment, stdout=pipe, stderr=pipe, text=True
        ) as process:
            running.append(process)
            said = process.communicate()[1]
        return process.returncode, said

    name = service.add(reply)
    path = tmp_path / "tiny" / "served.jsonl"
    code, said = start()
    assert code == 130
    assert "Interrupted: waiting for the calls in flight. Run the same command again" in said
    assert f"the same command resumes: cradle infer --model served --out {tmp_path}" in said
    assert "Traceback" not in said
    # The calls in flight were answered, and their answers written.
    assert {p.key for p in read_journal(path)[1]} == set(asked)
    assert 5 <= len(asked) < TURNS - 5
    last = len(asked) + 5
    assert start()[0] == -signal.SIGKILL
    written = {p.key for p in read_journal(path)[1]}
    killed_at = len(asked)
    run(make_model(f"{service.url}/{name}/v1"), CORPUS, out=tmp_path)
    # What was asked more than once was in flight at the kill.
    assert not written & set(asked[killed_at:])
    counts = Counter(asked)
    assert counts.total() - TURNS <= CONCURRENCY
    made = read_journal(path)[1]
    assert len(made) == TURNS
    assert {p.key for p in made} == set(asked)
    texts = [body["messages"][0]["content"] for body in service.seen]
    answers = {hashlib.sha256(text.encode()).hexdigest()[:16]: answer(text) for text in texts}
    assert all(p.answer == answers[p.key] for p in made)
