"""The progress bar of a run on the terminal, and the question whether text may be sent."""

from __future__ import annotations

from typing import Final

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.table import Column

from cradle_lib.cli.console import err
from cradle_lib.cli.money import ask
from cradle_lib.detection import Progress
from cradle_lib.formatting import dollars

# Seconds over which the speed is estimated: slow models give few answers a minute.
_WINDOW: Final = 300


class RunBar(Bar):
    """Progress bar of a run: answers, rate, remaining time, and cost in dollars.

    With ``yes`` the user has already agreed that text is sent.
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
            TextColumn("{task.fields[details]}"),
            TimeRemainingColumn(),
            console=err,
            transient=True,
            speed_estimate_period=_WINDOW,
        )
        self._yes, self._unit, self.started = yes, unit, False
        self._shown = self.add_task(title, total=None, details="")

    def show(self, progress: Progress) -> None:
        """Updates the bar."""
        if not self.started:
            # Answers from earlier starts do not count towards the speed.
            self.reset(self._shown, total=progress.total, completed=progress.stored)
        self.started = True
        self.update(self._shown, completed=progress.done)
        speed = self.tasks[self._shown].speed
        pace = [f"{speed:,.3g} {self._unit}/s"] if speed else []
        spent = [dollars(progress.spent)] if progress.spent else []
        self.update(self._shown, details=" ".join([*pace, *spent]))

    def agree(self, question: str) -> bool:
        """Asks whether text may be sent, unless the user has agreed already."""
        self.stop()
        agreed = self._yes or ask(question)
        self.start()
        return agreed
