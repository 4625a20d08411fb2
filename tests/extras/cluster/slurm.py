"""A local SLURM cluster: slurmctld and two slurmd in a temporary folder."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NODES = ("n1", "n2")
_TOOLS = ("slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")
_CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
SlurmdParameters=config_overrides
AuthType=auth/none
CredType=cred/none
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=5
SlurmdTimeout=10
MinJobAge=300
{nodes}
PartitionName=main Nodes=n1,n2 Default=YES LLN=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Returns the reason why no cluster can run here, or an empty text."""
    absent = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if absent:
        return f"the package slurm-wlm is needed: {', '.join(absent)} not found"
    return "" if os.geteuid() == 0 else "a cluster of several nodes on one machine needs root"


class Cluster:
    """A running cluster.

    Args:
        folder: Folder for its configuration, state and logs.

    Attributes:
        environment: Environment variables for SLURM's tools.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def begin(self) -> None:
        folder = self.folder
        for name in ("state", "spool.n1", "spool.n2", "log"):
            (folder / name).mkdir()
        ports = _free_ports(3)
        nodes = "\n".join(
            f"NodeName={node} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={port} "
            "CPUs=8 RealMemory=4000 State=UNKNOWN"
            for node, port in zip(NODES, ports[1:], strict=True)
        )
        text = _CONFIGURATION.format(
            host=socket.gethostname(), port=ports[0], folder=folder, nodes=nodes
        )
        (folder / "slurm.conf").write_text(text)
        self._start("slurmctld", ["slurmctld", "-D", "-i"])
        for node in NODES:
            self.start_node(node)
        self.until(lambda: self.tool("sinfo", "-h", "-o", "%T %D").strip() == "idle 2")

    def start_node(self, node: str) -> None:
        self._start(node, ["slurmd", "-D", "-N", node])

    def kill_node(self, node: str) -> int:
        """Kills all processes of a node, like a power failure; returns the number of its tasks."""
        slurmd = self._processes.pop(node)
        slurmd.kill()
        slurmd.wait()
        tasks = 0
        for process in _processes_with(f"SLURMD_NODENAME={node}"):
            tasks += 1
            with suppress(OSError):
                keeper = int((process / "stat").read_text().rpartition(")")[2].split()[1])
                if (Path("/proc") / str(keeper) / "comm").read_text().startswith("slurmstepd"):
                    os.kill(keeper, signal.SIGKILL)
            with suppress(OSError):
                os.kill(int(process.name), signal.SIGKILL)
        return tasks

    def tool(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False
        )
        return done.stdout

    def end(self) -> None:
        self.tool("scancel", "--user=root")
        for process in reversed(self._processes.values()):
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()

    def _start(self, name: str, command: list[str]) -> None:
        with (self.folder / "log" / f"{name}.out").open("ab") as out:
            self._processes[name] = subprocess.Popen(
                command, env=self.environment, stdout=out, stderr=out, start_new_session=True
            )

    def until(self, holds: object) -> None:
        assert callable(holds)
        waiting = threading.Event()
        for _ in range(200):
            if holds():
                return
            waiting.wait(0.1)
        logs = "".join(path.read_text()[-1500:] for path in (self.folder / "log").iterdir())
        raise RuntimeError(f"the cluster did not start:\n{logs}")


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Runs a cluster during a block."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    made = Cluster(folder)
    try:
        made.begin()
        yield made
    finally:
        made.end()
        shutil.rmtree(folder, ignore_errors=True)


def _processes_with(variable: str) -> Iterator[Path]:
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with suppress(OSError):
                if variable.encode() in (process / "environ").read_bytes().split(b"\0"):
                    yield process


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
