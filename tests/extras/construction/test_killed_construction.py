"""A construction that is killed and taken up again gives the same corpus, and pays once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from cradle_lib import load_corpus

from ...detection.api.fault_server import FaultServer, Reply, chat
from .stub_writer import mixed

SCRIPT = Path(__file__).with_name("killed_construction.py")


def kill(process: int) -> None:
    # A question that a dead process had sent may arrive late.
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


@contextmanager
def starts(victims: list[int]) -> Iterator[Callable[[dict[str, str]], Callable[[], int]]]:
    """Gives what begins a start, and notes its process; what that gives waits for its status."""
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[3]), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, SCRIPT],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin
        assert stdout

        def begin(order: dict[str, str]) -> Callable[[], int]:
            stdin.write(json.dumps(order) + "\n")
            stdin.flush()
            victims.append(int(stdout.readline()))
            return lambda: int(stdout.readline())

        yield begin
        stdin.close()


@pytest.mark.parametrize("kills", [8, pytest.param(30, marks=pytest.mark.hostile)])
def test_kills_change_nothing(tmp_path: Path, kills: int) -> None:
    rng = random.Random(16)
    seen: list[dict[str, Any]] = []
    victim: list[int] = []
    begun, ended = threading.Event(), threading.Event()
    fatal = [0]

    def reply(attempt: int) -> Reply:
        if attempt >= fatal[0]:
            begun.wait(30)
            threading.Timer(rng.uniform(0, 0.01), kill, (victim[-1],)).start()
        if attempt > fatal[0]:
            # A process that would have ended by itself waits here for its end.
            ended.wait(30)
        return chat(message={"content": mixed(seen[attempt]["messages"][0]["content"])})

    with FaultServer({"ok": reply}, seen) as server, starts(victim) as begin:

        def start(folder: str) -> int:
            begun.clear()
            ended.clear()
            end = begin({"url": f"{server.url}/ok/v1", "folder": str(tmp_path / folder)})
            begun.set()
            status = end()
            ended.set()
            return status

        for _ in range(kills):
            fatal[0] = len(seen) + rng.randint(0, 1)
            assert start("killed") == -signal.SIGKILL
        fatal[0] = sys.maxsize
        assert start("killed") == 0
        asked = len(seen)
        assert start("whole") == 0
    whole, torn = (tmp_path / name for name in ("whole", "killed"))
    for name in ("corpus.parquet", "rejected.jsonl", "plans.csv"):
        assert (whole / name).read_bytes() == (torn / name).read_bytes(), name
    corpus = load_corpus(whole / "corpus.parquet")
    rejected = (whole / "rejected.jsonl").read_text().splitlines()
    assert len(corpus) + len(rejected) == 60
    assert len(rejected) > 0
    # What was kept was not asked again: at most the calls in flight at each kill were lost.
    needed = len(seen) - asked
    assert needed <= asked <= needed + 3 * kills
