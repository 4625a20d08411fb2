"""The progress bar of `cradle infer`, with a simulated clock."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from rich.progress import TimeRemainingColumn

from cradle_lib.detection import Progress


def test_the_speed_of_a_resumed_run_is_that_of_this_start() -> None:
    now = 1000.0
    bar = import_module("cradle_lib.cli.run_bar").RunBar("m", "turns", yes=True)
    bar.get_time = lambda: now
    progress = Progress(done=900, stored=900, total=1000, spent=0)
    bar.show(progress)
    [task] = bar.tasks
    assert task.fields["details"] == ""
    for second in range(1, 11):
        now = 1000.0 + 2 * second
        bar.show(replace(progress, done=900 + second, spent=0.5))
    # One answer in two seconds, 90 remaining: 180 seconds. With stored answers it would be 2.
    assert task.fields["details"] == "0.5 turns/s $0.5"
    assert str(TimeRemainingColumn().render(task)) == "0:03:00"
