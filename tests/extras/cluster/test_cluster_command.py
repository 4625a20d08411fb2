"""The commands ``cradle cluster`` and ``cradle join``; ``test_slurm`` uses a real SLURM."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from cradle_extras.cluster import jobs
from cradle_extras.cluster.command import count_answers, run_jobs
from cradle_extras.cluster.jobs import Commands, End, Local
from cradle_lib.errors import CradleError, EngineError, JournalError

from ...cli.in_process import invoke
from ...detection.dialogues import without_timestamps
from .gated_server import GatedServer, start

OPTIONS = ["--model", "keyword", "--set", "limit=4", "--out"]
KEYWORD = ["infer", *OPTIONS]


def test_separate_shards_are_joined_and_different_divisions_are_refused(tmp_path: Path) -> None:
    assert invoke(*KEYWORD, tmp_path / "one").exit_code == 0
    assert invoke(*KEYWORD, tmp_path, "--shard", "1/2").exit_code == 0
    refused = invoke("cluster", "local", "--shards", "3", *OPTIONS, tmp_path)
    assert isinstance(refused.exception, EngineError)
    assert "Finish it with --shards 2" in str(refused.exception)
    assert invoke(*KEYWORD, tmp_path, "--shard", "0/2").exit_code == 0
    journals = [path / "surrogate-test" / "keyword.jsonl" for path in (tmp_path / "one", tmp_path)]
    done = invoke("join", journals[1], "--json")
    assert json.loads(done.stdout) == {"journal": str(journals[1]), "shards": 2}
    assert without_timestamps(journals[0]) == without_timestamps(journals[1])
    before = journals[1].read_bytes()
    refused = invoke("cluster", "local", "--shards", "2", *OPTIONS, tmp_path)
    assert isinstance(refused.exception, JournalError)
    # Refused before any job starts, not only when the shards are joined.
    assert "already exists. If it is not finished, finish it" in str(refused.exception)
    assert journals[1].read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["local", "--shards", "2", "--shard", "0/2"], "--shard is set for each job"),
        (["cloud", "--shards", "2"], "no cluster 'cloud'"),
        (["local", "--shards", "2", "--sbatch", "account=us"], "Leave --sbatch out"),
    ],
)
def test_incompatible_options_are_refused(tmp_path: Path, words: list[str], message: str) -> None:
    refused = invoke("cluster", *words, *OPTIONS, tmp_path)
    assert isinstance(refused.exception, CradleError)
    assert message in str(refused.exception)
    mistyped = invoke("cluster", *words[:3], "--modle", "keyword")
    assert mistyped.exit_code == 2
    assert "--modle" in mistyped.output


def test_errors_of_slurm_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    words = ["cluster", "slurm", "--shards", "2", "--sbatch", "account=theirs"]
    refused = invoke(*words, *OPTIONS, tmp_path / "runs")
    assert "there is no SLURM here: sbatch not found" in str(refused.exception)
    # A message of sbatch on a cluster with accounts.
    reason = "Batch job submission failed: Invalid account or account/partition combination"
    tools = {"sbatch": f"echo 'sbatch: error: {reason}' >&2\nexit 1\n", "squeue": "", "srun": ""}
    for name, script in tools.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    refused = invoke(*words, *OPTIONS, tmp_path / "runs")
    assert isinstance(refused.exception, EngineError)
    assert str(refused.exception) == f"SLURM refuses the tasks: {reason}."


@pytest.mark.parametrize(
    ("environment", "installed", "shares"),
    [
        ({"CUDA_VISIBLE_DEVICES": "4,5"}, (), ["4", "5", "4"]),
        # A large model needs several GPUs for each process.
        ({"CUDA_VISIBLE_DEVICES": "0, 2 ,4,MIG-6"}, (), ["0", "2", "4,MIG-6"]),
        ({}, ("GPU-a", "GPU-b", "GPU-c"), ["GPU-a", "GPU-b", "GPU-c"]),
        ({}, (), ["unset"] * 3),
        ({"CUDA_VISIBLE_DEVICES": ""}, ("GPU-a", "GPU-b"), [""] * 3),
        # What the scheduler allots takes precedence over what the machine has.
        ({"SLURM_JOB_ID": "1"}, ("GPU-a", "GPU-b"), ["unset"] * 3),
    ],
)
def test_each_process_sees_its_own_gpus(
    environment: dict[str, str],
    installed: tuple[str, ...],
    shares: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = "import os; print(os.environ.get('CUDA_VISIBLE_DEVICES', 'unset'))"
    monkeypatch.setattr(jobs, "_PROGRAM", (sys.executable, "-S", "-c", program))
    # The driver's tool, which lists the GPUs of the machine or fails without any.
    tool = tmp_path / "nvidia-smi"
    tool.write_text(
        f"#!/bin/sh\nprintf '%s\\n' {' '.join(installed)}\n" if installed else "#!/bin/sh\nexit 9\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    local = Local(tmp_path, 3)
    local.submit({index: [] for index in range(3)})
    for process in local._jobs.values():
        assert process.wait() == 0
    # A shard that is submitted again gets the same GPUs.
    local.submit({1: []})
    assert local._jobs[1].wait() == 0
    logs = [(tmp_path / f"shard-{index}.log").read_text() for index in range(3)]
    assert logs == [f"{share}\n" for share in shares]


class Scripted:
    """A cluster whose jobs end as scripted, with one end per submission of a shard."""

    def __init__(self, ends: dict[int, list[End | BaseException]]) -> None:
        self.ends, self.jobs = ends, dict[int, End | BaseException]()
        self.submitted: list[int] = []
        self.interrupted = False

    def submit(self, commands: Commands) -> None:
        self.submitted += commands
        self.jobs |= {index: self.ends[index].pop(0) for index in commands}

    def ended(self, indices: Iterable[int]) -> dict[int, End]:
        ends = {index: self.jobs[index] for index in indices}
        for end in ends.values():
            if isinstance(end, BaseException):
                raise end
        return {index: end for index, end in ends.items() if isinstance(end, tuple)}

    def interrupt(self) -> None:
        self.interrupted = True


KILLED, FINE, NO_KEY = (None, "timeout"), (0, "Next: cradle score"), (2, "no key")


@pytest.mark.parametrize(
    ("ends", "submitted", "failed"),
    [
        ({0: [(1, "")], 1: [KILLED, FINE]}, [0, 1, 1], []),
        ({0: [FINE], 1: [KILLED, KILLED]}, [0, 1, 1], ["shard 1/2: timeout"]),
        # An error of the command would occur again.
        ({0: [NO_KEY, FINE], 1: [NO_KEY]}, [0, 1], ["shard 0/2: no key", "shard 1/2: no key"]),
    ],
)
def test_a_job_that_dies_is_submitted_again_once(
    ends: dict[int, list[End | BaseException]],
    submitted: list[int],
    failed: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    cluster = Scripted(ends)
    shown: list[None] = []
    assert run_jobs(cluster, {0: [], 1: []}, lambda: shown.append(None)) == failed  # type: ignore[arg-type]
    assert cluster.submitted == submitted
    assert shown
    assert not cluster.interrupted


def test_an_exception_interrupts_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    cluster = Scripted({0: [FINE], 1: [OSError(28, "No space")]})
    with pytest.raises(OSError, match="No space"):
        run_jobs(cluster, {0: [], 1: []}, lambda: None)  # type: ignore[arg-type]
    assert cluster.interrupted


def test_a_failed_process_has_its_reason(tmp_path: Path) -> None:
    cluster = Local(tmp_path, 2)
    cluster.submit({0: ["score", "missing.jsonl"], 1: ["models"]})
    # Killed before Python has started.
    cluster._jobs[1].kill()
    cluster._jobs[0].wait()
    cluster._jobs[1].wait()
    ended = cluster.ended([0, 1])
    assert ended[0][0] == 2
    assert ended[0][1].startswith("missing.jsonl: ")
    assert ended[1] == (None, "signal 9")


class InProcess(Local):
    """Runs the commands in sequence in this process, because starting Python takes seconds."""

    def submit(self, commands: Commands) -> None:
        self.ends = {n: (invoke(*words).exit_code, "") for n, words in commands.items()}

    def ended(self, indices: Iterable[int]) -> dict[int, End]:
        return {n: self.ends[n] for n in indices}


def test_a_run_can_be_resumed_after_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with GatedServer(1) as server:
        served = ["--model", "openai:m", "--set", f"base_url={server.url}"]
        served += ["--set", "concurrency=1", "--set", "limit=2", "--out"]
        command = ["cluster", "local", "--shards", "2"]
        first = start(*command, *served, tmp_path)
        assert server.wait_for(2)
        first.send_signal(signal.SIGINT)
        logs = tmp_path / "surrogate-test" / ".openai-m.cluster"
        waiting = threading.Event()
        for _ in range(600):
            texts = [log.read_text() for log in logs.glob("shard-*.log")]
            if any("waiting for the calls in flight" in text for text in texts):
                break
            waiting.wait(0.1)
        server.open()
        out, err = first.communicate(timeout=60)
        assert first.returncode == 130, out + err
        assert "The same command resumes" in err
        shards = sorted((tmp_path / "surrogate-test").glob("openai-m.shard-*"))
        # Answers in flight at Ctrl-C are kept.
        assert sum(map(count_answers, shards)) == server.asked
        monkeypatch.setattr("cradle_extras.cluster.command.Local", InProcess)
        done = invoke(*command, *served, tmp_path, "--json")
        assert done.exit_code == 0, done.output
        asked = server.asked
        assert invoke("infer", *served, tmp_path / "one").exit_code == 0
    one, joined = (
        path / "surrogate-test" / "openai-m.jsonl" for path in (tmp_path / "one", tmp_path)
    )
    assert without_timestamps(joined) == without_timestamps(one)
    # No question was asked twice.
    content = json.loads(done.stdout)
    assert asked == count_answers(joined) == content["turns"] == content["outcomes"]["ok"]
