"""A run that is interrupted and killed loses no paid answer and repeats no question."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from cradle_lib import paths
from cradle_lib.corpus.release import write_release
from cradle_lib.detection import read_journal

from ...cli.in_process import invoke
from ...loopback import is_question
from .fault_server import FaultServer, Reply, chat
from .services import long_corpus

# Handles Ctrl-C as in a terminal, even if the tests run in the background.
PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from cradle_lib.cli import main
main()
"""
ANSWERS = ("none", "alert_ongoing", "something else", "confirm_SH_past; confirm_DV_past")
TURNS = 6 * 5
CONCURRENCY = 8


def key_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def answer_to(text: str) -> str:
    """Gives an answer that depends on the whole prompt, and thereby on earlier tags."""
    return ANSWERS[sha256(text.encode()).digest()[0] % len(ANSWERS)]


def test_an_interrupted_and_killed_run_can_be_resumed(tmp_path: Path, service: FaultServer) -> None:
    asked: list[str] = []
    running: list[subprocess.Popen[str]] = []
    # One signal for each start, sent at its fifth call.
    signals = [signal.SIGINT, signal.SIGKILL]
    last = 5

    def reply(attempt: int) -> Reply:
        text = service.seen[attempt]["messages"][0]["content"]
        if not is_question(text):
            return chat()
        asked.append(text)
        if signals and len(asked) == last:
            os.kill(running[-1].pid, signals.pop(0))
        return chat(message={"content": answer_to(text)})

    corpus, path = tmp_path / "own.csv", tmp_path / "run.jsonl"
    write_release(long_corpus(6, 5), corpus)
    address = f"{service.url}/{service.add(reply)}/v1"
    command = ["infer", "--model", "openai:served", "--corpus", str(corpus), "--out", str(path)]
    command += ["--set", f"base_url={address}", "--set", "prompt=append"]

    def start() -> tuple[int, str]:
        """Runs the command; returns its exit status and standard error."""
        environment = {**os.environ, "PYTHONPATH": str(paths.ROOT)}
        with subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            running.append(process)
            messages = process.communicate()[1]
        return process.returncode, messages

    code, messages = start()
    assert code == 130, messages
    assert "Interrupted: waiting for the calls in flight. Run the same command again" in messages
    assert "the same command resumes: cradle infer --model openai:served" in messages
    assert "Traceback" not in messages
    # The calls in flight were answered, and their answers written.
    assert {p.key for p in read_journal(path)[1]} == set(map(key_of, asked))
    assert 5 <= len(asked) < TURNS - 5
    last = len(asked) + 5
    assert start()[0] == -signal.SIGKILL
    written = {p.key for p in read_journal(path)[1]}
    killed_at = len(asked)
    resumed = invoke(*command)
    assert "Journal:" in resumed.stdout, resumed.exception
    # Only calls that were in flight at the kill are repeated.
    assert not written & set(map(key_of, asked[killed_at:]))
    assert len(asked) - TURNS <= CONCURRENCY
    assert {p.key: p.answer for p in read_journal(path)[1]} == {
        key_of(text): answer_to(text) for text in asked
    }
    assert len(set(asked)) == TURNS
