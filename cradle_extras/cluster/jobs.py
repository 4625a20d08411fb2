"""Submits commands of this library as jobs, asks for their states, and cancels them.

``submitit`` submits to SLURM. States come from ``squeue``: submitit asks ``sacct``, which needs an
accounting database that not every cluster has.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.errors import EngineError

#: Words of a command after ``cradle``, by the number of its shard.
Commands = Mapping[int, Sequence[str]]
_PROGRAM: Final = (sys.executable, "-m", "cradle_lib.cli")
# States of jobs that ended without a result; FORGOTTEN is a job that SLURM no longer lists. The
# result of a job that is COMPLETED may be seen on this machine a minute later.
_ENDED: Final = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "FORGOTTEN", "NODE_FAIL"),
        *("OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
    }
)


@dataclass(frozen=True, slots=True)
class End:
    """How a job ended: the exit status of its command, and the reason if it failed.

    The status is ``None`` if the job was ended from outside: out of time, killed, a node without
    power. ``cancelled`` says that somebody ended it on purpose.
    """

    status: int | None
    reason: str = ""
    cancelled: bool = False


class Slurm:
    """A SLURM cluster. Scripts and logs go to the folder, which every node must see.

    Args:
        folder: The folder.
        name: Name of the jobs, by which jobs of an earlier start are recognised.
        options: Options of ``sbatch`` by name, such as ``{"gres": "gpu:1"}``.

    Raises:
        EngineError: If SLURM or submitit is missing, or jobs of that name are in the queue.
    """

    def __init__(self, folder: Path, name: str, options: Mapping[str, str]) -> None:
        if importlib.util.find_spec("submitit") is None:
            raise EngineError(
                "`cradle cluster slurm` needs the package submitit, which is not installed. "
                f"Install it with `{paths.install_command('cluster')}`."
            )
        missing = [tool for tool in ("sbatch", "squeue", "scancel") if shutil.which(tool) is None]
        if missing:
            raise EngineError(
                f"there is no SLURM here: {', '.join(missing)} not found. Start this on a login "
                "node of the cluster, or use `cradle cluster local`."
            )
        self._folder, self._name, self._options = folder, name, dict(options)
        self.jobs: dict[int, Any] = {}
        queue = _slurm("squeue", "--noheader", "--me", f"--name={name}", "--format=%F")
        if queue.returncode:
            raise EngineError(f"SLURM does not answer: {_reason(queue.stderr)}.")
        if earlier := sorted(set(queue.stdout.split())):
            raise EngineError(
                f"jobs of an earlier start are still in the queue: {', '.join(earlier)}. Wait for "
                f"them, or end them with `scancel {' '.join(earlier)}`; then the same command goes "
                "on from what they answered."
            )

    def submit(self, commands: Commands) -> None:
        """Submits commands as one array. A refusal by SLURM is an error with its reason."""
        from submitit.core.utils import FailedJobError, FailedSubmissionError
        from submitit.slurm.slurm import SlurmExecutor

        executor = SlurmExecutor(self._folder)
        # Failed jobs are submitted again from here: SLURM itself would wait for two minutes.
        extra = {"no_requeue": True, "nodes": 1, "ntasks": 1, **self._options}
        executor.update_parameters(
            job_name=self._name,
            time=None,
            wckey=None,
            use_srun=False,
            additional_parameters=extra,
        )
        try:
            # submitit also prints what SLURM says, which the error repeats.
            with redirect_stderr(StringIO()):
                jobs = executor.map_array(run_command, list(commands.values()))
        except (FailedJobError, FailedSubmissionError, subprocess.SubprocessError) as error:
            raise EngineError(f"SLURM refuses the tasks: {_reason(str(error))}.") from None
        self.jobs |= dict(zip(commands, jobs, strict=True))

    def ended(self) -> dict[int, End]:
        """Looks for results, and asks ``squeue`` about jobs without one.

        While SLURM does not answer, as when its controller is restarted, these count as running.
        """
        arrays = {job.job_id.partition("_")[0] for job in self.jobs.values()}
        queue = _slurm(
            *("squeue", "--noheader", "--array", "--states=all", "--format=%i|%T"),
            f"--jobs={','.join(sorted(arrays))}",
        )
        silent = queue.returncode != 0 and "Invalid job id" not in queue.stderr
        states = dict(line.split("|", 1) for line in queue.stdout.split() if "|" in line)
        found = {}
        for index, job in self.jobs.items():
            state = states.get(job.job_id, "RUNNING" if silent else "FORGOTTEN")
            if job.paths.result_pickle.exists():
                found[index] = _end(_result(job), job.paths.stderr)
            elif state in _ENDED:
                reason = state.lower().replace("_", " ")
                found[index] = End(None, reason, cancelled=state == "CANCELLED")
        return found

    def interrupt(self) -> None:
        """Interrupts the jobs that run, and takes the others out of the queue."""
        self._cancel("--state=PENDING")
        self._cancel("--signal=INT", "--full")

    def kill(self) -> None:
        """Ends all jobs at once."""
        self._cancel()

    def _cancel(self, *options: str) -> None:
        if self.jobs:
            _slurm("scancel", *options, *(job.job_id for job in self.jobs.values()))


class Local:
    """Processes of this machine, all at the same time; logs go to the folder.

    Args:
        folder: The folder.
        gpus: GPUs of each process; 0 for all that this process sees.

    Raises:
        EngineError: If there are fewer GPUs than one process needs.
    """

    def __init__(self, folder: Path, gpus: int) -> None:
        self._folder, self._gpus = folder, gpus
        self.jobs: dict[int, subprocess.Popen[bytes]] = {}
        seen = os.environ.get("CUDA_VISIBLE_DEVICES")
        numbers = list(map(str, range(gpu_count()))) if seen is None else seen.split(",")
        self._seen = [number for number in numbers if number] if gpus else []
        if len(self._seen) < gpus:
            raise EngineError(
                f"--sbatch gres=gpu:{gpus}: this machine shows {len(self._seen)} GPUs."
            )

    def submit(self, commands: Commands) -> None:
        """Starts a process for each command, with GPUs of its own."""
        for index, words in commands.items():
            environment = dict(os.environ)
            if self._gpus:
                own = range(index * self._gpus, (index + 1) * self._gpus)
                devices = [self._seen[number % len(self._seen)] for number in own]
                environment["CUDA_VISIBLE_DEVICES"] = ",".join(devices)
            with self._log(index).open("wb") as log:
                # In a session of its own, so that Ctrl-C reaches it once: from `interrupt`.
                self.jobs[index] = subprocess.Popen(
                    [*_PROGRAM, *words],
                    stdout=log,
                    stderr=log,
                    env=environment,
                    start_new_session=True,
                )

    def ended(self) -> dict[int, End]:
        """Looks at the processes."""
        ended = {}
        for index, process in self.jobs.items():
            if (status := process.poll()) is not None:
                ended[index] = _end(status, self._log(index))
        return ended

    def interrupt(self) -> None:
        """Sends Ctrl-C to the processes."""
        for process in self.jobs.values():
            process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Ends the processes at once."""
        for process in self.jobs.values():
            process.kill()

    def _log(self, index: int) -> Path:
        return self._folder / f"shard-{index}.log"


def run_command(words: Sequence[str]) -> int:
    """Runs a command of this library in a job, and returns its exit status.

    A job whose command was killed leaves no result: SLURM's state says why.
    """
    process = subprocess.Popen([*_PROGRAM, *words])
    while process.returncode is None:
        # An interrupt reaches the command too, which ends when its calls in flight have ended.
        with suppress(KeyboardInterrupt):
            process.wait()
    if process.returncode < 0:
        raise SystemExit(128 - process.returncode)
    return process.returncode


def gpu_count() -> int:
    """Counts the GPUs that PyTorch sees on this machine; 0 without PyTorch."""
    try:
        import torch
    except ImportError:
        return 0
    return torch.cuda.device_count()


def _end(status: int, log: Path) -> End:
    if status < 0:
        return End(None, f"killed by {signal.Signals(-status).name}")
    lines: list[str] = []
    with suppress(OSError):
        text = log.read_text(encoding="utf-8", errors="replace")
        lines = [line.strip() for line in text.splitlines() if any(map(str.isalnum, line))]
    reasons = [line for line in lines if line.startswith("error:")] or lines or [f"status {status}"]
    return End(status, reasons[-1].removeprefix("error:").strip(" .")[:1000])


def _result(job: Any) -> int:
    """The exit status of a job's command; 2 if it could not be started, which its log explains."""
    from submitit.core.utils import FailedJobError

    try:
        return int(job.result())
    except FailedJobError:
        return 2


def _slurm(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _reason(output: str) -> str:
    """Extracts the lines in which SLURM's tools say what is wrong."""
    reasons = re.findall(r"(?:error|fatal): *(\S.*)", output)
    return (
        "; ".join(dict.fromkeys(reasons)) or " ".join(output.split())[:300] or "it does not say why"
    )
