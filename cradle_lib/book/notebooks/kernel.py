"""The kernel that executes pages: IPython as it is installed, without anybody's settings.

Configuration and startup files are not read, whether of the user, the environment or the machine,
so that a page does not depend on who builds it. A cell that IPython would let pass although it
failed is an error: one that calls ``exit``, or one whose magic hides the failure of its own code.
"""

from __future__ import annotations

from typing import Any

from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell
from traitlets import Type


class PageShell(ZMQInteractiveShell):  # type: ignore[misc, unused-ignore]
    """Fails a cell that calls ``exit`` or hides the failure of the code within it."""

    _running = False

    def ask_exit(self) -> None:
        """Refuses ``exit`` and ``quit``."""
        raise SystemExit("it ends the notebook")

    def run_cell(self, *args: Any, **options: Any) -> Any:
        """Runs a cell, or the code within one: for example below ``%%capture``."""
        nested, self._running = self._running, True
        try:
            result: Any = super().run_cell(*args, **options)  # type: ignore[no-untyped-call]
        finally:
            self._running = nested
        if nested:
            result.raise_error()
        return result


class PageKernel(IPythonKernel):  # type: ignore[misc, unused-ignore]
    """A kernel with this shell."""

    shell_class = Type(PageShell)


class PageKernelApp(IPKernelApp):  # type: ignore[misc, unused-ignore]
    """Starts the kernel without settings."""

    kernel_class = Type(PageKernel)

    def load_config_file(self, *args: Any, **options: Any) -> None:
        """Reads no configuration."""

    def init_code(self) -> None:
        """Runs no startup files."""
