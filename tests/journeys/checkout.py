"""A fresh clone of the project, used through the commands that the documentation prints."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import bs4

from cradle_lib import paths

_PROGRAMS = {
    "cradle": "cradle_lib.cli:main",
    "jupyter": "jupyter_core.command:main",
    "jupyter-book": "jupyter_book.cli.main:main",
    "jupyter-execute": "nbclient.cli:main",
    "papermill": "papermill.cli:papermill",
}


@dataclass(frozen=True)
class Checkout:
    """A copy of the project with an environment, in the home of somebody who starts with it.

    Attributes:
        folder: The top folder.
    """

    folder: Path

    @classmethod
    def clone(cls, folder: Path) -> Checkout:
        """Copies all files that git would commit, and makes an environment for the copy.

        The environment uses the packages installed here, so that nothing is downloaded. Its own
        copy of the project takes precedence over the one that is tested from.
        """
        listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        names = subprocess.check_output(listing, cwd=paths.ROOT, text=True).split("\0")
        for name in filter(None, names):
            source, target = paths.ROOT / name, folder / name
            if source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        made = cls(folder)
        made._make_environment()
        return made

    def copy(self, folder: Path) -> Checkout:
        """Copies the clone with everything that was built in it."""
        shutil.copytree(self.folder, folder, symlinks=True, ignore=shutil.ignore_patterns(".venv"))
        made = Checkout(folder)
        made._make_environment()
        return made

    def _make_environment(self) -> None:
        environment = self.folder / ".venv"
        command = [sys.executable, "-m", "venv", "--without-pip", str(environment)]
        subprocess.run(command, check=True)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        installed = sysconfig.get_path("purelib")
        links = f"{self.folder}\nimport site; site.addsitedir({installed!r})\n"
        (environment / "lib" / version / "site-packages" / "here.pth").write_text(links)
        for name, entry in _PROGRAMS.items():
            module, function = entry.split(":")
            code = (
                f"from {module} import {function}\nif __name__ == '__main__':\n    {function}()\n"
            )
            program = environment / "bin" / name
            program.write_text(f"#!{environment}/bin/python\n{code}")
            program.chmod(0o755)
        for stamp in (".book", ".dev"):  # The Makefile's marks of a finished installation.
            (environment / stamp).touch()

    def start(self, command: str, **environment: str) -> subprocess.Popen[str]:
        """Starts a command in the top folder, as typed into a shell."""
        home = self.folder.parent / "home"
        home.mkdir(exist_ok=True)
        own = {"PATH": os.environ["PATH"], "HOME": str(home), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.folder,
            env=own | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # A shell starts background jobs, such as tests, with Ctrl-C ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def run(self, command: str, *, fails: bool = False, **environment: str) -> str:
        """Runs a command to its end and gives everything that it printed.

        ``fails`` says whether the command must fail. No command may end in a traceback.
        """
        process = self.start(command, **environment)
        printed, _ = process.communicate()
        assert (process.returncode != 0) == fails, f"{command}: {process.returncode}\n{printed}"
        assert "Traceback" not in printed, f"{command}\n{printed}"
        return printed

    def interrupt(
        self,
        command: str,
        wait: Callable[[subprocess.Popen[str]], object],
        sent: signal.Signals,
        after: Callable[[], None] = lambda: None,
    ) -> tuple[int, str]:
        """Starts a command, sends a signal to it when ``wait`` returns, and waits for its end.

        ``after`` is called when the signal was sent. Gives the exit code and everything that was
        printed.
        """
        process = self.start(command)
        try:
            wait(process)
        finally:
            os.killpg(process.pid, sent)
            after()
            printed, _ = process.communicate()
        return process.returncode, printed

    def page(self, name: str) -> bs4.BeautifulSoup:
        """Reads a built page, such as ``sections/runs``."""
        text = (self.folder / "book" / "_build" / "html" / f"{name}.html").read_text("utf-8")
        return bs4.BeautifulSoup(text, "html.parser")

    def explorer_has(self, text: str) -> bool:
        """Whether the explorer of the built book has a text in its data."""
        data = (self.folder / "book" / "_build" / "html" / "_explorer").rglob("*.js")
        return any(text in path.read_text("utf-8") for path in data)

    def remove_built(self) -> None:
        """Removes everything that the book's build made, but not the answers of runs."""
        for name in ("_build", "sections"):
            shutil.rmtree(self.folder / "book" / name, ignore_errors=True)
