"""What `cradle infer` shows of a run that goes on: rich's clock is ours here."""

from __future__ import annotations

from importlib import import_module

from rich.progress import Progress, TimeRemainingColumn

run_bar = import_module("cradle_lib.cli.run_bar")


def test_a_resumed_run_goes_at_the_speed_of_this_start() -> None:
    now = 1000.0
    speed, left = run_bar._Speed(), TimeRemainingColumn()
    bar = Progress(speed, left, get_time=lambda: now, speed_estimate_period=run_bar._WINDOW)
    bar.add_task("m", total=None, unit="turns")
    [task] = bar.tasks
    bar.reset(task.id, total=1000, completed=900)
    assert str(speed.render(task)) == ""
    for second in range(1, 11):
        now = 1000.0 + 2 * second
        bar.update(task.id, completed=900 + second)
    # One answer in two seconds, 90 to go: 180 seconds. Over all answers ever it would be 2.
    assert str(speed.render(task)) == "0.5 turns/s"
    assert str(left.render(task)) == "0:03:00"
