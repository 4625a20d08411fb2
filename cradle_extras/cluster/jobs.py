"""Runs commands of this library as jobs of a SLURM cluster, or as processes of this machine.

``submitit`` submits to SLURM. States come from ``squeue``, because submitit would ask ``sacct``,
which needs an accounting database that not every cluster has.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.errors import EngineError

#: Index of a shard to the arguments of its ``cradle`` command.
Commands = Mapping[int, Sequence[str]]
#: How a job ended: exit status (``None`` if it died: timeout, kill, node failure) and reason.
End = tuple[int | None, str]
_PROGRAM: Final = (sys.executable, "-m", "cradle_lib.cli")
# COMPLETED is included, because this machine may see the job's result a minute later.
_ALIVE: Final = frozenset(
    ["PENDING", "RUNNING", "COMPLETING", "COMPLETED", "CONFIGURING", "SUSPENDED"]
)


class Slurm:
    """A SLURM cluster. Scripts and logs go to the folder, which every node must see.

    Args:
        folder: The folder; its path identifies jobs of an earlier start.
        options: Options of ``sbatch`` by name, such as ``{"gres": "gpu:1"}``.

    Raises:
        EngineError: If SLURM or submitit is missing, or jobs of an earlier start are in the queue.
    """

    def __init__(self, folder: Path, options: Mapping[str, str]) -> None:
        if importlib.util.find_spec("submitit") is None:
            raise EngineError(
                "`cradle cluster slurm` needs the package submitit, which is not installed. "
                f"Install it with `{paths.install_command('cluster')}`."
            )
        if shutil.which("sbatch") is None:
            raise EngineError(
                "there is no SLURM here: sbatch not found. Start this on a login node of the "
                "cluster, or use `cradle cluster local`."
            )
        self._folder, self._options = folder, dict(options)
        self._name = f"cradle-{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
        self._jobs: dict[int, Any] = {}
        queue = _output("squeue", "--noheader", "--me", f"--name={self._name}", "--format=%F")
        if queue.returncode:
            raise EngineError(f"SLURM does not answer: {_reason(queue.stderr)}.")
        if earlier := sorted(set(queue.stdout.split())):
            raise EngineError(
                f"jobs of an earlier start are still in the queue: {', '.join(earlier)}. Wait for "
                f"them, or end them with `scancel {' '.join(earlier)}`; then the same command "
                "resumes from their answers."
            )

    def submit(self, commands: Commands) -> None:
        """Submits commands as one job array.

        Raises:
            EngineError: If SLURM refuses the jobs, with its reason.
        """
        from submitit.core.utils import FailedJobError, FailedSubmissionError
        from submitit.slurm.slurm import SlurmExecutor

        executor = SlurmExecutor(self._folder)
        # `run_jobs` resubmits jobs that died; SLURM itself would wait for two minutes.
        extra = {"no_requeue": True, "nodes": 1, "ntasks": 1, **self._options}
        executor.update_parameters(
            job_name=self._name,
            time=None,
            wckey=None,
            use_srun=False,
            additional_parameters=extra,
        )
        try:
            # submitit also prints SLURM's messages, which the error repeats.
            with redirect_stderr(StringIO()):
                jobs = executor.map_array(run_command, list(commands.values()))
        except (FailedJobError, FailedSubmissionError, subprocess.SubprocessError) as error:
            raise EngineError(f"SLURM refuses the tasks: {_reason(str(error))}.") from None
        self._jobs |= dict(zip(commands, jobs, strict=True))

    def ended(self, indices: Iterable[int]) -> dict[int, End]:
        """Finds the jobs that ended: looks for results, and asks ``squeue`` about the others.

        While SLURM does not answer, such as during a restart, these count as running.
        """
        arrays = {job.job_id.partition("_")[0] for job in self._jobs.values()}
        queue = _output(
            *("squeue", "--noheader", "--array", "--states=all", "--format=%i|%T"),
            f"--jobs={','.join(sorted(arrays))}",
        )
        unreachable = queue.returncode != 0 and "Invalid job id" not in queue.stderr
        states = dict(line.split("|", 1) for line in queue.stdout.split() if "|" in line)
        found: dict[int, End] = {}
        for index in indices:
            job = self._jobs[index]
            state = states.get(job.job_id, "RUNNING" if unreachable else "unknown to SLURM")
            if job.paths.result_pickle.exists():
                found[index] = _result(job), _last_error(job.paths.stderr)
            elif state not in _ALIVE:
                found[index] = None, state.lower().replace("_", " ")
        return found

    def interrupt(self) -> None:
        """Interrupts running jobs, and removes the others from the queue."""
        ids = [job.job_id for job in self._jobs.values()]
        _output("scancel", "--state=PENDING", *ids)
        _output("scancel", "--signal=INT", "--full", *ids)


class Local:
    """Processes of this machine, all at the same time; logs go to the folder.

    Each process gets its own share of the GPUs as ``CUDA_VISIBLE_DEVICES``.

    Args:
        folder: The folder of the logs.
        shards: The number of processes among which the GPUs are divided.
    """

    def __init__(self, folder: Path, shards: int) -> None:
        self._folder, self._shards = folder, shards
        self._gpus = _visible_gpus()
        self._jobs: dict[int, subprocess.Popen[bytes]] = {}

    def submit(self, commands: Commands) -> None:
        """Starts a process for each command."""
        for index, words in commands.items():
            share = _share(self._gpus, index, self._shards)
            device = {"CUDA_VISIBLE_DEVICES": ",".join(share)} if share else {}
            with self._log(index).open("wb") as log:
                # In a separate session, so that Ctrl-C reaches it only through `interrupt`.
                self._jobs[index] = subprocess.Popen(
                    [*_PROGRAM, *words],
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **device},
                    start_new_session=True,
                )

    def ended(self, indices: Iterable[int]) -> dict[int, End]:
        """Finds the processes that ended."""
        found: dict[int, End] = {}
        for index in indices:
            status = self._jobs[index].poll()
            if status is not None:
                killed = status < 0
                reason = f"signal {-status}" if killed else _last_error(self._log(index))
                found[index] = None if killed else status, reason
        return found

    def interrupt(self) -> None:
        """Sends Ctrl-C to the processes, and waits for them; a second Ctrl-C kills them."""
        try:
            for process in self._jobs.values():
                process.send_signal(signal.SIGINT)
            for process in self._jobs.values():
                process.wait()
        except KeyboardInterrupt:
            for process in self._jobs.values():
                process.kill()

    def _log(self, index: int) -> Path:
        return self._folder / f"shard-{index}.log"


def _visible_gpus() -> list[str]:
    """The GPUs that processes may use; empty if the environment decides this, or there are none.

    A scheduler that started this process has set ``CUDA_VISIBLE_DEVICES`` to the allotted GPUs, or
    has allotted none. Other GPUs of the machine may belong to other jobs.
    """
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [gpu.strip() for gpu in given.split(",") if gpu.strip()]
    if "SLURM_JOB_ID" in os.environ or shutil.which("nvidia-smi") is None:
        return []
    # Names instead of numbers, because CUDA may count the GPUs in another order.
    found = _output("nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader")
    return [] if found.returncode else found.stdout.split()


def _share(gpus: Sequence[str], index: int, shards: int) -> Sequence[str]:
    """Divides GPUs into neighbouring blocks; if there are fewer GPUs than shards, shards share."""
    if len(gpus) < shards:
        return gpus[index % len(gpus) :][:1] if gpus else ()
    return gpus[index * len(gpus) // shards : (index + 1) * len(gpus) // shards]


def run_command(words: Sequence[str]) -> int:
    """Runs a command of this library in a job, and returns its exit status.

    A job whose command was killed leaves no result; SLURM's state gives the reason.
    """
    # The command receives the interrupt too, and ends after its calls in flight.
    signal.signal(signal.SIGINT, lambda *_: None)
    status = subprocess.call([*_PROGRAM, *words])
    if status < 0:
        raise SystemExit(128 - status)
    return status


def _last_error(log: Path) -> str:
    """Extracts the error, or else the last line, of a command's log."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    errors = [line for line in lines if line.startswith("error:")]
    last = (errors or [line for line in lines if line.strip()] or ["no message"])[-1]
    return last.removeprefix("error:").strip(" .")[:1000]


def _result(job: Any) -> int:
    """The exit status of a job's command; 2 if it could not be started (see its log)."""
    from submitit.core.utils import FailedJobError

    try:
        return int(job.result())
    except FailedJobError:
        return 2


def _output(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _reason(output: str) -> str:
    """Extracts the error messages from the output of SLURM's tools."""
    reasons = re.findall(r"(?:error|fatal): *(\S.*)", output)
    return "; ".join(dict.fromkeys(reasons)) or " ".join(output.split())[:300] or "no reason given"
