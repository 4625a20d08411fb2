"""Starts the kernels of pages as copies of a process that has imported what most pages import.

The imports take about three seconds, more than the cells of many pages. Each worker of a build has
one such process, the fork server of :mod:`multiprocessing`.
"""

from __future__ import annotations

import os
from multiprocessing.context import ForkServerProcess
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner


class Provisioner(LocalProvisioner):  # type: ignore[misc, unused-ignore]
    """Starts one kernel."""

    process: Any = None

    async def launch_kernel(self, cmd: list[str], **options: Any) -> KernelConnectionInfo:
        """Starts a kernel with the arguments in ``cmd``, as the leader of a process group."""
        self.process = _Kernel(target=_run, args=(cmd, options["env"], options["cwd"]), daemon=True)
        self.process.start()
        self.pid = self.pgid = self.process.pid
        return self.connection_info


class _Kernel(ForkServerProcess):
    """A process with the methods of a subprocess that jupyter_client calls."""

    stdin = stdout = stderr = None

    def poll(self) -> int | None:
        return self.exitcode

    def wait(self) -> int | None:
        self.join()
        return self.exitcode

    def send_signal(self, number: int) -> None:
        if self.pid is not None and self.is_alive():
            os.kill(self.pid, number)


def _run(arguments: list[str], environment: dict[str, str], folder: str) -> None:
    from cradle_lib.book.notebooks.kernel import PageKernelApp

    # Signals for the kernel also reach the processes that it starts.
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    # The fork server ends with the worker, and then the kernel does.
    PageKernelApp.launch_instance([*arguments, f"--IPKernelApp.parent_handle={os.getppid()}"])
