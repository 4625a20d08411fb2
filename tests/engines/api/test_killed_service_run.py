"""A run that is interrupted and killed loses no paid answer and repeats no question."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from cradle_lib.detection import read_journal
from cradle_lib.detection.runs.run import run

from ...loopback import is_question
from .fault_server import FaultServer, Reply, chat
from .killed_service_run import CORPUS, TURNS, make_model

SCRIPT = Path(__file__).with_name("killed_service_run.py")
ANSWERS = ("none", "alert_ongoing", "something else", "confirm_SH_past; confirm_DV_past")
CONCURRENCY = 8


def test_an_interrupted_and_killed_run_can_be_resumed(tmp_path: Path, service: FaultServer) -> None:
    asked: list[str] = []
    running: list[subprocess.Popen[str]] = []
    # One signal for each start, sent at its fifth call.
    signals = [signal.SIGINT, signal.SIGKILL]
    last = 5

    def answer(text: str) -> str:
        # Answers depend on the whole prompt, and thereby on earlier tags.
        return ANSWERS[hashlib.sha256(text.encode()).digest()[0] % len(ANSWERS)]

    def reply(attempt: int) -> Reply:
        text = service.seen[attempt]["messages"][0]["content"]
        if not is_question(text):
            return chat()
        asked.append(hashlib.sha256(text.encode()).hexdigest()[:16])
        if signals and len(asked) == last:
            os.kill(running[-1].pid, signals.pop(0))
        return chat(message={"content": answer(text)})

    def start() -> tuple[int, str]:
        """Runs the command; returns its exit status and standard error."""
        command = [sys.executable, SCRIPT, f"{service.url}/{name}/v1", str(tmp_path)]
        environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[3])}
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, env=environment, stdout=pipe, stderr=pipe, text=True
        ) as process:
            running.append(process)
            messages = process.communicate()[1]
        return process.returncode, messages

    name = service.add(reply)
    path = tmp_path / "tiny" / "served.jsonl"
    code, messages = start()
    assert code == 130
    assert "Interrupted: waiting for the calls in flight. Run the same command again" in messages
    assert f"the same command resumes: cradle infer --model served --out {tmp_path}" in messages
    assert "Traceback" not in messages
    # The calls in flight were answered, and their answers written.
    assert {p.key for p in read_journal(path)[1]} == set(asked)
    assert 5 <= len(asked) < TURNS - 5
    last = len(asked) + 5
    assert start()[0] == -signal.SIGKILL
    written = {p.key for p in read_journal(path)[1]}
    killed_at = len(asked)
    run(make_model(f"{service.url}/{name}/v1"), CORPUS, out=tmp_path)
    # Only calls that were in flight at the kill are repeated.
    assert not written & set(asked[killed_at:])
    counts = Counter(asked)
    assert counts.total() - TURNS <= CONCURRENCY
    made = read_journal(path)[1]
    assert len(made) == TURNS
    assert {p.key for p in made} == set(asked)
    texts = [body["messages"][0]["content"] for body in service.seen]
    answers = {hashlib.sha256(text.encode()).hexdigest()[:16]: answer(text) for text in texts}
    assert all(p.answer == answers[p.key] for p in made)
