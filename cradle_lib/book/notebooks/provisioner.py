"""Starts the kernels of pages as copies of a process that has imported what most pages import.

That process is the fork server of :mod:`multiprocessing`. It ends with the build. Apart from that,
a kernel is a program of its own: with arguments, exit functions and child processes.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from contextlib import suppress
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerProcess
from typing import Any, Final

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from cradle_lib.errors import BookError

_PRELOADED: Final = "cradle_lib.book.notebooks.preloaded"
# Folders for sockets: the longest path in bytes, and one that is used instead of a longer one.
_LONGEST_PLACE: Final = 70
_SHORT_PLACE: Final = "/tmp"
_QUIET: Final = "ignore:resource_tracker"
_STARTING: Final = threading.Lock()


def short_place() -> str:
    """Gives a folder for temporary files with a path that is short enough for sockets.

    If there is none, it is the usual one.
    """
    place = tempfile.gettempdir()
    if len(os.fsencode(place)) > _LONGEST_PLACE and os.access(_SHORT_PLACE, os.W_OK):
        return _SHORT_PLACE
    return place


class Provisioner(LocalProvisioner):  # type: ignore[misc, unused-ignore]
    """Starts one kernel."""

    process: Any = None

    async def launch_kernel(self, cmd: list[str], **options: Any) -> KernelConnectionInfo:
        """Starts a kernel with the arguments in ``cmd``, as the leader of a process group."""
        with _STARTING:
            _start_fork_server()
        self.process = Kernel(target=_run, args=(cmd, options["env"], options["cwd"]))
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

    def end(self) -> None:
        """Ends the kernel with the processes that it has started."""
        if self.pid is not None and self.is_alive():
            # Until it leads a group of its own, it has started none.
            self.kill()
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)


def _start_fork_server() -> None:
    """Starts the fork server, unless it runs. Ctrl-C does not reach it.

    Its socket gets a short path, whatever the path of the temporary folder is.
    """
    multiprocessing.set_forkserver_preload(["__main__", _PRELOADED])
    usual = tempfile.tempdir
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        tempfile.tempdir = short_place()
        # The fork server would start it, and then the signal is no longer blocked. It removes what
        # the kernels of an interrupted build leave, and need not say so.
        sys.warnoptions.append(_QUIET)
        resource_tracker.ensure_running()
        sys.warnoptions.remove(_QUIET)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        forkserver.ensure_running()
    except OSError as error:
        hint = "Set TMPDIR to a folder with a shorter path."
        raise BookError(f"no kernel can be started: {error}. {hint}") from None
    finally:
        tempfile.tempdir = usual
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)


def _run(arguments: list[str], environment: dict[str, str], folder: str) -> None:
    from cradle_lib.book.notebooks.kernel import PageKernelApp

    # Signals for the kernel also reach the processes that it starts.
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_the_build, daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    # Otherwise processes of the page would start as this one did, in the folder of the build.
    multiprocessing.set_start_method(None, force=True)
    multiprocessing.process.ORIGINAL_DIR = folder  # type: ignore[attr-defined]
    sys.argv[1:] = arguments
    PageKernelApp.launch_instance(arguments)
    # A copied process ends without them.
    atexit._run_exitfuncs()


def _end_with_the_build() -> None:
    """Ends this kernel when the build is gone: the fork server lives as long as its copies."""
    build = multiprocessing.parent_process()
    if build is not None:
        build.join()
        os.killpg(0, signal.SIGKILL)
