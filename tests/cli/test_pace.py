"""The pace of a run, worked out by hand on a clock of our own."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.cli.pace import WINDOW, Pace, duration
from cradle_lib.detection import Outcome, Prediction, Progress


def answered(tokens_in: int | None = None, tokens_cached: int | None = None) -> Prediction:
    return Prediction(
        "d0001", 0, "0" * 16, "none", 0, Outcome.OK,
        tokens_in=tokens_in, tokens_cached=tokens_cached,
    )  # fmt: skip


def test_nothing_is_claimed_before_the_first_answer() -> None:
    pace = Pace()
    pace.update(Progress(0, 100, 0), now=5.0)
    assert (pace.rate, pace.left, pace.reused, str(pace)) == (None, None, None, "")


def test_a_resumed_run_goes_at_the_pace_of_this_start() -> None:
    pace = Pace()
    pace.update(Progress(900, 1000, 900), now=1000.0)
    assert pace.rate is None
    for second in range(1, 11):
        pace.update(Progress(900 + second, 1000, 900), now=1000.0 + 2 * second)
    # One answer in two seconds, 90 to go: 180 seconds. Over all answers ever it would be 2.
    assert pace.rate == pytest.approx(0.5)
    assert pace.left == pytest.approx(180)
    assert str(pace) == "0.5 turns/s, 3 min 00 s left"


def test_loading_does_not_count_once_there_are_answers_to_go_by() -> None:
    pace = Pace()
    pace.update(Progress(0, 100, 0), now=0.0)
    pace.update(Progress(1, 100, 0), now=50.0)
    assert pace.rate == pytest.approx(1 / 50)
    for second in range(1, 5):
        pace.update(Progress(1 + 2 * second, 100, 0), now=50.0 + second)
    # Eight more answers in four seconds.
    assert pace.rate == pytest.approx(2)
    assert pace.left == pytest.approx(91 / 2)


def test_many_answers_in_one_instant_are_no_rate_of_thousands() -> None:
    pace = Pace()
    pace.update(Progress(0, 640, 0), now=0.0)
    for answer in range(1, 65):
        pace.update(Progress(answer, 640, 0), now=8.0 + answer * 1e-6)
    # 64 answers in the eight seconds since the start.
    assert pace.rate == pytest.approx(8, rel=1e-4)
    assert pace.left == pytest.approx(72, rel=1e-4)


def test_what_was_longer_than_a_minute_ago_is_forgotten() -> None:
    pace = Pace()
    pace.update(Progress(0, 10_000, 0), now=0.0)
    done, now = 0, 0.0
    for _ in range(200):
        done, now = done + 1, now + 0.1
        pace.update(Progress(done, 10_000, 0), now)
    assert pace.rate == pytest.approx(10)
    for _ in range(2 * int(WINDOW)):
        done, now = done + 1, now + 1
        pace.update(Progress(done, 10_000, 0), now)
    assert pace.rate == pytest.approx(1)


def test_a_slow_model_still_has_a_rate() -> None:
    pace = Pace()
    pace.update(Progress(0, 20, 0), now=0.0)
    for answer in range(1, 13):
        pace.update(Progress(answer, 20, 0), now=300.0 * answer)
    # One answer in five minutes, eight to go: forty minutes.
    assert pace.left == pytest.approx(40 * 60)
    assert str(pace) == "0.00333 turns/s, 40 min 00 s left"


def test_the_share_of_reused_tokens_is_over_the_answers_that_tell() -> None:
    progress = Progress(4, 9, 4)
    for prediction in (answered(1000, 900), answered(500), answered(), answered(1000, 990)):
        progress = progress.after(prediction)
    assert progress == Progress(8, 9, 4, tokens_in=2000, tokens_cached=1890)
    pace = Pace()
    pace.update(Progress(4, 9, 4), now=0.0)
    pace.update(progress, now=2.0)
    assert pace.reused == pytest.approx(0.945)
    assert str(pace) == "2 turns/s, 95 % reused, 1 s left"


def test_rounding_never_claims_that_all_was_reused() -> None:
    pace = Pace()
    pace.update(Progress(0, 9, 0), now=0.0)
    pace.update(Progress(1, 9, 0, tokens_in=1000, tokens_cached=999), now=2.0)
    assert "99 % reused" in str(pace)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (0.2, "1 s"),
        (59.5, "1 min 00 s"),
        (61, "1 min 01 s"),
        (3599.5, "1 h 00 min"),
        (3661, "1 h 01 min"),
        (360_000, "100 h 00 min"),
    ],
)
def test_durations_read_well(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.integers(1, 50), st.floats(0, 100)), min_size=1, max_size=40),
    st.integers(0, 100),
)
def test_time_left_is_what_is_left_over_the_rate(
    steps: list[tuple[int, float]], stored: int
) -> None:
    total = stored + sum(count for count, _ in steps)
    pace, done, now = Pace(), stored, 0.0
    pace.update(Progress(done, total, stored), now)
    for count, seconds in steps:
        done, now = done + count, now + seconds
        pace.update(Progress(done, total, stored), now)
        if pace.rate is None:
            assert now == 0
            continue
        assert pace.rate > 0
        assert pace.left == pytest.approx((total - done) / pace.rate)
        assert str(pace)
