"""Where tasks run: on a SLURM cluster, or as processes of this machine.

Both submit through ``submitit``. Its own way to ask for states (``sacct``) needs an accounting
database, which not every cluster has; here ``squeue`` is asked.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any, Final, Protocol

from cradle_lib import paths
from cradle_lib.cluster.task import Task, perform
from cradle_lib.errors import ClusterError

#: States of a task that is not over; every other one is.
WAITING: Final = "PENDING"
RUNNING: Final = "RUNNING"
_STILL: Final = {
    **dict.fromkeys(("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SUSPENDED"), WAITING),
    **dict.fromkeys(("RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING", "STOPPED"), RUNNING),
}
# Seconds that a controller may be silent, as it is while it is started anew.
_SILENCE: Final = 600.0
_MONTHS: Final = 60 * 24 * 365


class Place(Protocol):
    """Runs tasks.

    Attributes:
        slowest: Seconds between two looks at tasks that run long.
        lasting: Whether tasks outlive the process that submitted them.
    """

    slowest: float
    lasting: bool

    def submit(self, tasks: Sequence[tuple[Task, Path]]) -> list[str]:
        """Submits tasks, each with the file that notes its end; gives their ids."""

    def states(self, ids: Sequence[str]) -> dict[str, str]:
        """Says how tasks stand: waiting, running, or a word for how they ended."""

    def cancel(self, ids: Sequence[str]) -> None:
        """Ends tasks."""

    def settle(self) -> None:
        """Waits until nothing is left of tasks that have ended."""


class Slurm:
    """A cluster with SLURM, whose queue calls the tasks by a name.

    Scripts and logs go to the folder, which every node must see. Options are those of ``sbatch`` by
    name, such as ``{"gres": "gpu:1"}``.
    """

    slowest = 10.0
    lasting = True

    def __init__(self, folder: Path, options: Mapping[str, str], name: str) -> None:
        _require_submitit()
        missing = [tool for tool in ("sbatch", "squeue", "scancel") if shutil.which(tool) is None]
        if missing:
            raise ClusterError(
                f"there is no SLURM here: {', '.join(missing)} not found. Start this on a login "
                "node of the cluster, or use --cluster local."
            )
        self._folder, self._options, self._name = folder, dict(options), name
        self._heard = time.monotonic()
        self._last: dict[str, str] = {}

    def submit(self, tasks: Sequence[tuple[Task, Path]]) -> list[str]:
        """Submits tasks as one array; what SLURM refuses is an error with its reason."""
        from submitit.core.utils import FailedJobError, FailedSubmissionError
        from submitit.slurm.slurm import SlurmExecutor

        executor = SlurmExecutor(self._folder)
        # Who dies is submitted again from here, at once: SLURM would let two minutes pass first.
        extra = {"no_requeue": True, "nodes": 1, "ntasks": 1, **self._options}
        executor.update_parameters(
            job_name=self._name,
            time=None,
            wckey=None,
            use_srun=False,
            additional_parameters=extra,
        )
        try:
            # It would repeat what SLURM says, which stands in the error.
            with redirect_stderr(StringIO()):
                jobs = executor.map_array(perform, *zip(*tasks, strict=True))
        except (FailedJobError, FailedSubmissionError, subprocess.SubprocessError) as error:
            raise ClusterError(f"SLURM refuses the tasks: {_reason(str(error))}.") from None
        return [str(job.job_id) for job in jobs]

    def states(self, ids: Sequence[str]) -> dict[str, str]:
        """Asks ``squeue``. A task that it has forgotten is over.

        Raises:
            ClusterError: If the controller has been silent for ten minutes.
        """
        wanted = ",".join(sorted({name.partition("_")[0] for name in ids}))
        command = ["squeue", "--noheader", "--array", "--states=all", "--format=%i|%T"]
        done = subprocess.run(
            [*command, f"--jobs={wanted}"], capture_output=True, text=True, check=False
        )
        if done.returncode and "Invalid job id" not in done.stderr:
            if time.monotonic() - self._heard > _SILENCE:
                raise ClusterError(
                    f"SLURM has not answered for ten minutes ({_reason(done.stderr)}). Tasks may "
                    "go on; the same command takes them up again."
                )
            return {name: self._last.get(name, RUNNING) for name in ids}
        self._heard = time.monotonic()
        found = dict(line.split("|", 1) for line in done.stdout.split() if "|" in line)
        self._last = {
            name: _STILL.get(state := found.get(name, "FORGOTTEN"), state) for name in ids
        }
        return self._last

    def cancel(self, ids: Sequence[str]) -> None:
        """Ends tasks, those that wait in the queue included."""
        if ids:
            subprocess.run(["scancel", *ids], capture_output=True, check=False)

    def settle(self) -> None:
        """Nothing is left here of what ran elsewhere."""


class Local:
    """This machine: a process for each task, all at once; logs go to the folder."""

    slowest = 1.0
    lasting = False

    def __init__(self, folder: Path) -> None:
        _require_submitit()
        self._folder = folder
        self._jobs: dict[str, Any] = {}

    def submit(self, tasks: Sequence[tuple[Task, Path]]) -> list[str]:
        """Starts a process for each task."""
        from submitit.local.local import LocalExecutor

        executor = LocalExecutor(self._folder)
        executor.update_parameters(timeout_min=_MONTHS)
        jobs = [executor.submit(perform, task, end) for task, end in tasks]
        self._jobs |= {str(job.job_id): job for job in jobs}
        return [str(job.job_id) for job in jobs]

    def states(self, ids: Sequence[str]) -> dict[str, str]:
        """Looks at the processes; one of another start is not known, and over."""
        return {n: self._jobs[n].state if n in self._jobs else "FORGOTTEN" for n in ids}

    def cancel(self, ids: Sequence[str]) -> None:
        """Interrupts tasks and waits for their ends."""
        for name in ids:
            if name in self._jobs:
                self._jobs[name].cancel()
        self.settle()

    def settle(self) -> None:
        """Waits for the processes, which note their end a moment before it."""
        for job in self._jobs.values():
            job._process.wait()


def _require_submitit() -> None:
    if importlib.util.find_spec("submitit") is None:
        raise ClusterError(
            "--cluster needs the package submitit, which is not installed. Install it with "
            f"`{paths.install_command('cluster')}`."
        )


def _reason(said: str) -> str:
    """The lines in which SLURM's tools say what is wrong."""
    told = re.findall(r"(?:error|fatal): *(\S.*)", said)
    return "; ".join(dict.fromkeys(told)) or " ".join(said.split())[:300] or "it does not say why"
