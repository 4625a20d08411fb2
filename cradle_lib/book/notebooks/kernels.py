"""Kernels that begin with everything imported, because they are forked from a process that has.

Most of a page's seconds would be imports that all notebooks share, and journals that many of them
read. Each worker of the build keeps one process that has made the imports and read the journals; a
kernel is a fork of it, in which nothing else differs from a kernel that was started anew. Systems
without ``fork`` start each kernel anew.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Final

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from cradle_lib import paths
from cradle_lib.errors import CradleError
from cradle_lib.files import visible_files

CAN_FORK: Final = hasattr(os, "fork")
_NAME: Final = "cradle-forked"
_MODULE: Final = "ipykernel_launcher"
_READS_RUNS: Final = "CRADLE_PAGE_READS_RUNS"
_INLINE: Final = "module://matplotlib_inline.backend_inline"
_PRELOADED: Final = (
    "ipykernel.kernelapp",
    "matplotlib_inline.backend_inline",
    "seaborn",
    "cradle_lib.annotation",
)


def kernel_spec(*, forked: bool, reads_runs: bool = False) -> KernelSpec:
    """Says how a kernel of this Python is started: by a fork, if wanted, on a system that can.

    If its notebook reads all runs over the book's corpus, what it is forked from has read them.
    """
    metadata = {}
    if forked and CAN_FORK:
        factory = KernelProvisionerFactory.instance()
        place = EntryPoint(_NAME, f"{Forked.__module__}:{Forked.__name__}", factory.GROUP_NAME)
        factory.provisioners[_NAME] = place
        metadata = {"kernel_provisioner": {"provisioner_name": _NAME}}
    return KernelSpec(
        argv=[sys.executable, "-m", _MODULE, "-f", "{connection_file}"],
        display_name="Python 3",
        language="python",
        metadata=metadata,
        env={_READS_RUNS: "1"} if reads_runs else {},
    )


class Kernel:
    """A forked kernel, with what Jupyter asks of a process."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        """Gives ``None`` while it runs; how it ended is not known, and 0 stands for that."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    # It is called when the kernel has ended.
    wait = poll

    def send_signal(self, number: int) -> None:
        """Sends a signal, if it still runs."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


class Forked(LocalProvisioner):  # type: ignore[misc, unused-ignore]
    """Starts a kernel by a fork."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Asks the process that has imported everything for a fork."""
        arguments = cmd[cmd.index(_MODULE) + 1 :]
        self.cwd = str(kwargs.get("cwd") or os.getcwd())
        kernel: Any = Kernel(_fork(arguments, kwargs.get("env") or os.environ, self.cwd))
        self.process = kernel
        self.pid = self.pgid = kernel.pid
        return self.connection_info


@cache
def _server() -> socket.socket:
    """Starts the process that imports; it ends when this one does."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=os.environ | {"MPLBACKEND": _INLINE},
        )
    atexit.register(_stop, ours, process)
    return ours


def _stop(channel: socket.socket, process: subprocess.Popen[bytes]) -> None:
    channel.close()
    process.wait()


def _fork(arguments: list[str], env: Mapping[str, str], cwd: str) -> int:
    request = {"arguments": arguments, "env": dict(env), "cwd": cwd}
    _server().sendall(json.dumps(request).encode() + b"\n")
    answer = _server().recv(64)
    if not answer:
        raise RuntimeError("the process that forks kernels has ended")
    return int(answer)


def _serve(channel: socket.socket) -> None:
    import importlib

    import cradle_lib

    for name in _PRELOADED:
        importlib.import_module(name)
    for name in dir(cradle_lib):
        getattr(cradle_lib, name)
    read: list[tuple[Path, int]] = []
    # A kernel that has ended is gone at once; nobody waits for it.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with channel.makefile("rb") as requests:
        for line in requests:
            request = json.loads(line)
            if _READS_RUNS in request["env"]:
                # What is wrong with a file is said by the page that needs it.
                with suppress(CradleError, OSError):
                    if read != (read := _journals()):
                        _read_runs()
            pid = os.fork()
            if pid == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                channel.close()
                _become_kernel(**request)
            channel.sendall(f"{pid}\n".encode())


def _journals() -> list[tuple[Path, int]]:
    """The journals that there are, as they are now."""
    found = [
        p for folder in (paths.SHIPPED_RUNS, paths.RUNS) for p in visible_files(folder, "*/*.jsonl")
    ]
    return [(path, path.stat().st_mtime_ns) for path in sorted(found)]


def _read_runs() -> None:
    """Reads the book's runs; those that are in memory already are not parsed again."""
    from cradle_lib.book.corpus import BookCorpus
    from cradle_lib.corpus import load_corpus
    from cradle_lib.detection.runs import stored_runs

    stored_runs(load_corpus(BookCorpus.chosen(paths.ROOT).choice))


def _become_kernel(arguments: list[str], env: dict[str, str], cwd: str) -> None:
    """Runs a kernel in this process, and never returns."""
    try:
        os.setsid()
        os.chdir(cwd)
        os.environ.clear()
        # By this a kernel notices that the process it was forked from is gone.
        os.environ.update(env | {"JPY_PARENT_PID": str(os.getppid())})
        from ipykernel.kernelapp import launch_new_instance

        launch_new_instance(argv=arguments)
    finally:
        sys.stderr.flush()
        os._exit(0)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
