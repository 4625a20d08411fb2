"""Starts the kernels of pages as copies of a process that has imported what most pages import.

That process is the fork server of :mod:`multiprocessing`. It ends with the build.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.context import ForkServerProcess
from typing import Any, Final

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

_PRELOADED: Final = "cradle_lib.book.notebooks.preloaded"


class Provisioner(LocalProvisioner):  # type: ignore[misc, unused-ignore]
    """Starts one kernel."""

    process: Any = None

    async def launch_kernel(self, cmd: list[str], **options: Any) -> KernelConnectionInfo:
        """Starts a kernel with the arguments in ``cmd``, as the leader of a process group."""
        multiprocessing.set_forkserver_preload(["__main__", _PRELOADED])
        self.process = Kernel(target=_run, args=(cmd, options["env"], options["cwd"]), daemon=True)
        self.process.start()
        self.pid = self.pgid = self.process.pid
        return self.connection_info


class Kernel(ForkServerProcess):
    """A process with the methods of a subprocess that jupyter_client calls."""

    stdin = stdout = stderr = None

    def poll(self) -> int | None:
        """Gives the exit code, or ``None`` while the kernel runs."""
        return self.exitcode

    def wait(self) -> int | None:
        """Waits for the end."""
        self.join()
        return self.exitcode

    def send_signal(self, number: int) -> None:
        """Sends a signal, if the kernel runs."""
        if self.pid is not None and self.is_alive():
            os.kill(self.pid, number)


def _run(arguments: list[str], environment: dict[str, str], folder: str) -> None:
    from cradle_lib.book.notebooks.kernel import PageKernelApp

    # Signals for the kernel also reach the processes that it starts.
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_the_build, daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    PageKernelApp.launch_instance(arguments)


def _end_with_the_build() -> None:
    """Ends this kernel when the build is gone: the fork server lives as long as its copies."""
    build = multiprocessing.parent_process()
    if build is not None:
        build.join()
        os._exit(1)
