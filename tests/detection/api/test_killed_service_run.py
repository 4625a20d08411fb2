"""A run against a service, killed again and again: nothing paid for is lost or asked twice."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cradle_lib.detection import read_journal

from .fault_server import FaultServer, Reply, chat
from .killed_service_run import TURNS

SCRIPT = Path(__file__).with_name("killed_service_run.py")
ANSWERS = ("none", "alert_ongoing", "something else", "confirm_SH_past; confirm_DV_past")
CONCURRENCY = 6


class Runs:
    """Starts runs, one after the other, in the process that forks them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def begin(self, **order: str) -> int:
        """Starts a run; gives its process id."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._line()

    def end(self) -> int:
        """Waits for the run; gives its exit status, negative for a signal."""
        return self._line()

    def _line(self) -> int:
        assert self._process.stdout
        return int(self._process.stdout.readline())


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    prompts = tmp_path / "prompts"
    prompts.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[3]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, SCRIPT, prompts]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        (tmp_path / "stderr.txt").open("w") as errors,
        subprocess.Popen(command, env=environment, stderr=errors, **pipes) as process,
    ):
        yield Runs(process)
        assert process.stdin
        process.stdin.close()


class Service:
    """Answers by the text, so that a model's own earlier tags matter; logs what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.seen: list[dict[str, Any]] = []
        self.meet: Callable[[int], None] = lambda count: None

    def reply(self, attempt: int) -> Reply:
        text = self.seen[attempt]["messages"][0]["content"]
        digest = hashlib.sha256(text.encode()).digest()
        self.asked.append(digest.hex()[:16])
        self.meet(attempt + 1)
        return chat(message={"content": ANSWERS[digest[0] % len(ANSWERS)]})


def lines_of(path: Path) -> list[dict[str, Any]]:
    """A journal's answers without times, in the corpus's order."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line.pop("seconds", None)
        line.get("record", {}).pop("started", None)
    assert [i for i, line in enumerate(lines) if "record" in line] == [0]
    return [lines[0], *sorted(lines[1:], key=lambda line: (line["dialogue"], line["turn"]))]


def keys_of(path: Path) -> set[str]:
    return (
        {p.key for p in read_journal(path)[1]} if path.exists() and path.stat().st_size else set()
    )


def test_a_run_killed_twenty_times_ends_like_one_that_was_not(tmp_path: Path, runs: Runs) -> None:
    generator = random.Random(4)
    service = Service()
    path = tmp_path / "killed" / "tiny" / "served.jsonl"
    written: set[str] = set()
    with FaultServer({"ok": service.reply}, service.seen) as server:
        url = f"{server.url}/ok/v1"
        for _ in range(20):
            before = len(service.asked)
            # Each run gets a few answers further and is then killed, at any moment of those
            # that follow; if it is quicker than that, the service keeps it waiting.
            last = before + generator.randint(1, 8)
            held = last + generator.randint(0, 6)
            delay = generator.uniform(0.0, 0.02)
            begun, ended = threading.Event(), threading.Event()
            process: list[int] = []

            def meet(
                count: int,
                last: int = last,
                held: int = held,
                delay: float = delay,
                begun: threading.Event = begun,
                ended: threading.Event = ended,
                process: list[int] = process,
            ) -> None:
                if count == last:
                    begun.wait(30)
                    threading.Timer(delay, os.kill, (process[0], signal.SIGKILL)).start()
                if count > held:
                    ended.wait(30)

            service.meet = meet
            process.append(runs.begin(url=url, folder=str(tmp_path / "killed")))
            begun.set()
            assert runs.end() == -signal.SIGKILL
            ended.set()
            asked_now = service.asked[before:]
            # None whose answer had been written was asked for again.
            assert not written & set(asked_now)
            now = keys_of(path)
            assert written <= now
            written = now
        service.meet = lambda count: None
        before = len(service.asked)
        runs.begin(url=url, folder=str(tmp_path / "killed"))
        assert runs.end() == 0
        assert not written & set(service.asked[before:])
        log = list(service.asked)
        runs.begin(url=url, folder=str(tmp_path / "whole"))
        assert runs.end() == 0
    whole = lines_of(tmp_path / "whole" / "tiny" / "served.jsonl")
    assert len(whole) == 1 + TURNS
    assert len({line["labels"] for line in whole[1:]}) == 3
    assert lines_of(path) == whole
    counts = Counter(log)
    assert counts.keys() == {line["key"] for line in whole[1:]}
    # What was asked more than once was in flight at a kill: no more at each than fly at once.
    assert 0 <= sum(counts.values()) - TURNS <= 20 * CONCURRENCY


def test_ctrl_c_ends_the_command_with_130_when_the_calls_in_flight_are_written(
    tmp_path: Path, runs: Runs
) -> None:
    service = Service()
    path = tmp_path / "tiny" / "served.jsonl"
    begun = threading.Event()
    process: list[int] = []

    def meet(count: int) -> None:
        if count == 20:
            begun.wait(30)
            os.kill(process[0], signal.SIGINT)

    service.meet = meet
    with FaultServer({"ok": service.reply}, service.seen) as server:
        order = {"url": f"{server.url}/ok/v1", "folder": str(tmp_path), "command": "infer"}
        process.append(runs.begin(**order))
        begun.set()
        assert runs.end() == 130
        asked = len(service.asked)
        assert keys_of(path) == set(service.asked)
        assert 20 <= asked < TURNS
        runs.begin(**order)
        assert runs.end() == 0
        assert len(service.asked) == TURNS
    said = (tmp_path / "stderr.txt").read_text()
    assert "Interrupted: waiting for the calls in flight. Run the same command again" in said
    resumes = f"the same command resumes: cradle infer --model served --out {tmp_path}"
    assert resumes in said
    assert "Traceback" not in said
