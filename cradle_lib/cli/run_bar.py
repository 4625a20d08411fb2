"""The bar that a run shows on the terminal, and the question whether text may be sent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Column

from cradle_lib.cli.console import err
from cradle_lib.cli.money import ask
from cradle_lib.cli.pace import Pace
from cradle_lib.detection import Progress


class RunBar:
    """How far a run has come, at which rate, for how long still, and for how much money.

    Args:
        bar: What draws it.
        title: Name of what runs.
        unit: What is counted, such as ``turns``.
        yes: Whether the user has agreed already that text is sent.

    Attributes:
        started: Whether the run has begun.
    """

    def __init__(self, bar: Bar, title: str, unit: str, yes: bool) -> None:
        self._bar, self._pace, self._yes = bar, Pace(unit=unit), yes
        self._task = bar.add_task(title, total=None, pace="")
        self.started = False

    def show(self, progress: Progress) -> None:
        """Takes note of where the run stands."""
        self.started = True
        self._pace.update(progress, time.monotonic())
        self._bar.update(
            self._task, completed=progress.done, total=progress.total, pace=str(self._pace)
        )

    def agree(self, question: str) -> bool:
        """Asks whether text may be sent, unless the user has agreed already."""
        self.stop()
        agreed = self._yes or ask(question)
        self._bar.start()
        return agreed

    def stop(self) -> None:
        """Takes the bar off the terminal."""
        self._bar.stop()


@contextmanager
def run_bar(title: str, unit: str, *, yes: bool) -> Iterator[RunBar]:
    """Shows a bar while a run goes on.

    Args:
        title: Name of what runs.
        unit: What is counted.
        yes: Whether the user has agreed already that text is sent.

    Yields:
        The bar.
    """
    columns = (
        SpinnerColumn(),
        TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(max_width=24, no_wrap=True, overflow="ellipsis"),
        ),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}"),
    )
    with Bar(*columns, console=err, transient=True) as bar:
        yield RunBar(bar, title, unit, yes)
