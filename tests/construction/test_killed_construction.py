"""A construction that is killed thirty times and taken up again gives the same corpus."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from cradle_lib import load_corpus

from ..detection.api.fault_server import FaultServer, Reply, chat
from .stub_writer import mixed

SCRIPT = Path(__file__).with_name("killed_construction.py")
KILLS = 30


def kill(process: int) -> None:
    # A question that a dead process had sent may arrive late.
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def test_thirty_kills_change_nothing(tmp_path: Path) -> None:
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

    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[2]), "OMP_NUM_THREADS": "1"}
    with (
        FaultServer({"ok": reply}, seen) as server,
        subprocess.Popen(
            [sys.executable, SCRIPT],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdin
        assert process.stdout

        def start(folder: str) -> int:
            assert process.stdin
            assert process.stdout
            begun.clear()
            ended.clear()
            order = {"url": f"{server.url}/ok/v1", "folder": str(tmp_path / folder)}
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            victim.append(int(process.stdout.readline()))
            begun.set()
            status = int(process.stdout.readline())
            ended.set()
            return status

        for _ in range(KILLS):
            fatal[0] = len(seen) + rng.randint(0, 1)
            assert start("killed") == -signal.SIGKILL
        fatal[0] = sys.maxsize
        assert start("killed") == 0
        asked = len(seen)
        assert start("whole") == 0
        process.stdin.close()
    whole, torn = (tmp_path / name for name in ("whole", "killed"))
    for name in ("corpus.parquet", "rejected.jsonl", "plans.csv"):
        assert (whole / name).read_bytes() == (torn / name).read_bytes(), name
    corpus = load_corpus(whole / "corpus.parquet")
    rejected = (whole / "rejected.jsonl").read_text().splitlines()
    assert len(corpus) + len(rejected) == 60
    assert len(rejected) > 0
    # What was kept was not asked again: at most the calls in flight at each kill were lost.
    needed = len(seen) - asked
    assert needed <= asked <= needed + 3 * KILLS
