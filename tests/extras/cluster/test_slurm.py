"""Runs on a real local SLURM of two nodes, for `make test-slurm`.

The journals must equal those of a single process, except for measured times.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cradle_extras.cluster.command import count_answers

from ...cli.in_process import invoke
from ...detection.dialogues import without_timestamps
from .gated_server import GatedServer, start
from .slurm import Cluster, cluster, missing

pytestmark = pytest.mark.slurm


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    if why := missing():
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    with cluster() as made:
        yield made


STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture(scope="module", autouse=True)
def _kill_leftover_processes() -> Iterator[None]:
    yield
    for process in STARTED:
        process.kill()
        process.communicate()


def start_slurm(slurm: Cluster, *arguments: str | Path) -> subprocess.Popen[str]:
    STARTED.append(start("cluster", "slurm", *arguments, environment=slurm.environment))
    return STARTED[-1]


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=170)
    return process.returncode, out, err


def in_shards(slurm: Cluster, *arguments: str | Path) -> tuple[int, str, str]:
    return finish(start_slurm(slurm, *arguments))


def served(server: GatedServer) -> list[str]:
    return ["--model", "openai:m", "--set", f"base_url={server.url}", "--set", "concurrency=1"]


def test_eight_shards_give_the_journal_of_one_process(slurm: Cluster, tmp_path: Path) -> None:
    limit = ["--model", "keyword", "--set", "limit=24"]
    assert invoke("infer", *limit, "--out", tmp_path / "one").exit_code == 0
    options = ["--shards", "8", "--sbatch", "partition=main"]
    status, out, err = in_shards(slurm, *limit, *options, "--out", tmp_path / "many")
    assert status == 0, err
    assert re.search(r"^Next: .* score ", out, re.MULTILINE)
    one, many = (tmp_path / name / "surrogate-test" / "keyword.jsonl" for name in ("one", "many"))
    assert without_timestamps(one) == without_timestamps(many)
    # Only the joined journal remains.
    assert [path.name for path in many.parent.iterdir()] == ["keyword.jsonl"]


def test_a_killed_node_loses_no_answer(slurm: Cluster, tmp_path: Path) -> None:
    with GatedServer(7) as server:
        limit = [*served(server), "--set", "limit=24"]
        options = ["--shards", "8"]
        process = start_slurm(slurm, *limit, *options, "--out", tmp_path / "many")
        # Every shard waits for an answer in the middle of its run.
        assert server.wait_for(8)
        on_n2 = slurm.tool("squeue", "-h", "-w", "n2", "-t", "R", "-o", "%i").split()
        assert slurm.kill_node("n2") >= len(on_n2) > 0
        server.open()
        status, _, err = finish(process)
        assert status == 0, err
        assert err.count("died (node fail), and is submitted again.") == len(on_n2)
        assert invoke("infer", *limit, "--out", tmp_path / "one").exit_code == 0
    one, many = (tmp_path / name / "surrogate-test" / "openai-m.jsonl" for name in ("one", "many"))
    assert without_timestamps(one) == without_timestamps(many)
    slurm.start_node("n2")


def test_a_start_is_refused_while_jobs_of_another_run(slurm: Cluster, tmp_path: Path) -> None:
    with GatedServer(5) as server:
        options = [*served(server), "--set", "limit=6", "--shards", "2"]
        first = start_slurm(slurm, *options, "--out", tmp_path)
        assert server.wait_for(2)
        first.kill()
        first.wait()
        status, _, err = in_shards(slurm, *options, "--out", tmp_path)
        assert (status, err.strip().count("\n")) == (2, 0)
        found = re.search(r"still in the queue: (\d+)\. Wait for them, or end them with", err)
        assert found is not None, err
        slurm.tool("scancel", found[1])
        while slurm.tool("squeue", "-h", "-j", found[1], "-o", "%i").strip():
            pass
        # The questions answered by the killed start's jobs are not repeated.
        asked = server.asked
        server.open()
        status, _, err = in_shards(slurm, *options, "--out", tmp_path)
        assert status == 0, err
        assert server.asked - asked == answers(tmp_path) - 10


def test_ctrl_c_ends_the_jobs_and_keeps_the_answers(slurm: Cluster, tmp_path: Path) -> None:
    with GatedServer(5) as server:
        options = [*served(server), "--set", "limit=6", "--shards", "2"]
        first = start_slurm(slurm, *options, "--out", tmp_path)
        assert server.wait_for(2)
        first.send_signal(signal.SIGINT)
        assert first.stderr is not None
        assert any("after their calls in flight" in line for line in first.stderr)
        logs = tmp_path / "surrogate-test" / ".openai-m.cluster"
        slurm.until(
            lambda: sum("in flight" in log.read_text() for log in logs.glob("*_log.err")) == 2
        )
        server.open()
        status, _, err = finish(first)
        assert status == 130, err
        assert "the same command resumes" in err
        slurm.until(lambda: not slurm.tool("squeue", "-h").strip())
        assert server.asked == 12
        status, _, err = in_shards(slurm, *options, "--out", tmp_path)
        assert status == 0, err
        # No question was asked twice.
        assert server.asked == answers(tmp_path)


def answers(folder: Path) -> int:
    return count_answers(folder / "surrogate-test" / "openai-m.jsonl")
