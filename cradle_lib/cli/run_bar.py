"""The bar that a run shows on the terminal, and the question whether text may be sent."""

from __future__ import annotations

from typing import Final

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.table import Column
from rich.text import Text

from cradle_lib.cli.console import err
from cradle_lib.cli.money import ask
from cradle_lib.detection import Progress
from cradle_lib.formatting import dollars

# Seconds over which the speed is estimated: slow models give few answers a minute.
_WINDOW: Final = 300


class _Speed(ProgressColumn):
    """What is counted per second of this start, as rich estimates it."""

    def render(self, task: Task) -> Text:
        """Writes it, once it is known."""
        speed = task.speed
        if not speed:
            return Text("")
        shown = f"{speed:,.0f}" if speed >= 100 else f"{speed:.3g}"
        return Text(f"{shown} {task.fields['unit']}/s")


class RunBar(Bar):
    """How far a run has come, at which rate, for how long still, and for how much money.

    With ``yes`` it is agreed beforehand that text is sent.
    """

    def __init__(self, title: str, unit: str, *, yes: bool) -> None:
        super().__init__(
            SpinnerColumn(),
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(max_width=24, no_wrap=True, overflow="ellipsis"),
            ),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            _Speed(),
            TextColumn("{task.fields[details]}"),
            TimeRemainingColumn(),
            console=err,
            transient=True,
            speed_estimate_period=_WINDOW,
        )
        self._yes, self.begun = yes, False
        self._shown = self.add_task(title, total=None, unit=unit, details="")

    def show(self, progress: Progress) -> None:
        """Shows how far the run has come."""
        if not self.begun:
            # What earlier starts answered says nothing about the speed of this one.
            self.reset(self._shown, total=progress.total, completed=progress.stored)
        self.begun = True
        spent = dollars(progress.spent) if progress.spent else ""
        self.update(self._shown, completed=progress.done, details=spent)

    def agree(self, question: str) -> bool:
        """Asks whether text may be sent, unless the user has agreed already."""
        self.stop()
        agreed = self._yes or ask(question)
        self.start()
        return agreed
