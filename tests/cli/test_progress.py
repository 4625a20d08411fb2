"""What `cradle infer` shows of a run that goes on: rich's clock is ours here."""

from __future__ import annotations

from importlib import import_module

from rich.progress import Progress, TimeRemainingColumn

from cradle_lib.detection import Outcome, Prediction
from cradle_lib.detection import Progress as Run

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


def test_reused_tokens_are_counted_over_the_answers_that_tell() -> None:
    def answered(tokens_in: int | None = None, tokens_cached: int | None = None) -> Prediction:
        return Prediction(
            "d0001", 0, "0" * 16, "none", 0, Outcome.OK,
            tokens_in=tokens_in, tokens_cached=tokens_cached,
        )  # fmt: skip

    progress = Run(4, 9, 4)
    for prediction in (answered(1000, 900), answered(500), answered(), answered(1000, 990)):
        progress = progress.after(prediction)
    assert progress == Run(8, 9, 4, tokens_in=2000, tokens_cached=1890)
