"""The window opens and closes as its rule says, and finds what a service bears."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.detection.engines.window import Window


@dataclass
class Twin:
    """The rule, told again from the whole history with exact fractions.

    Every event is kept; the size is worked out anew from the first one each time.
    """

    limit: int
    events: list[tuple[str, int]] = field(default_factory=list)

    @property
    def size(self) -> Fraction:
        size, last_cut, cut = Fraction(1), 0, False
        for place, (what, began) in enumerate(self.events):
            if what == "begin" or began < last_cut:
                continue
            if what == "answered":
                grown = size + 1 / size if cut else max(size + 1, Fraction(10))
                size = min(grown, Fraction(self.limit))
            elif what == "overloaded":
                size, last_cut, cut = max(size / 2, Fraction(1)), place, True
        return size


@given(
    limit=st.integers(1, 12),
    moves=st.lists(
        st.tuples(st.sampled_from(["begin", "answered", "overloaded", "ended"]), st.integers(0)),
        max_size=120,
    ),
)
@settings(deadline=None, max_examples=100)
def test_the_window_has_the_size_that_its_history_gives(
    limit: int, moves: list[tuple[str, int]]
) -> None:
    window, twin = Window(limit), Twin(limit)
    flying: list[tuple[int, int]] = []
    for what, choice in moves:
        if what == "begin":
            if window.wait(0.0) is None:
                assert len(flying) >= int(twin.size)
                continue
            assert len(flying) < int(twin.size)
            flying.append((window.begin(), len(twin.events)))
            twin.events.append(("begin", 0))
        elif flying:
            began, place = flying.pop(choice % len(flying))
            twin.events.append((what, place))
            if what == "answered":
                window.answered(began)
            elif what == "overloaded":
                window.overloaded(began)
            else:
                window.ended()
        assert window.flying == len(flying)
        assert 1 <= window.size <= limit
        # Thirds and sevenths are not exact in binary: one part in a billion of slack.
        assert float(twin.size) == pytest.approx(window._size, rel=1e-9)


def test_a_run_begins_with_one_call_then_ten_and_doubles_with_each_round_trip() -> None:
    window, sizes = Window(64), []
    for _ in range(6):
        sizes.append(window.size)
        for began in [window.begin() for _ in range(window.size)]:
            window.answered(began)
    # Not 80 after 40: the limit is 64.
    assert sizes == [1, 10, 20, 40, 64, 64]


def opened(size: int, limit: int) -> Window:
    window = Window(limit)
    while window.size < size:
        window.answered(window.begin())
    return window


def test_a_burst_of_refusals_halves_the_window_once_and_then_it_grows_by_one_a_round() -> None:
    window = opened(16, limit=64)
    burst = [window.begin() for _ in range(16)]
    for began in burst[:12]:
        window.overloaded(began)
    # Calls of the same burst that came through tell nothing new either.
    for began in burst[12:]:
        window.answered(began)
    assert window.size == 8
    sizes = []
    for _ in range(3):
        for began in [window.begin() for _ in range(window.size)]:
            window.answered(began)
        sizes.append(window.size)
    # 8 + 1/8 + 1/8.125 + ... (eight times) is 8.94; then 9.80 and 10.69.
    assert sizes == [8, 9, 10]


def test_a_refusal_after_the_change_halves_it_again_and_one_call_is_always_left() -> None:
    window = opened(4, limit=4)
    for expected in (2, 1, 1, 1):
        window.overloaded(window.begin())
        assert window.size == expected
    assert window.wait(0.0) == 0


def test_what_says_nothing_about_load_changes_nothing() -> None:
    window = opened(5, limit=5)
    window.begin()
    window.ended()
    assert (window.size, window.flying) == (5, 0)


def test_a_service_that_names_a_time_is_left_alone_until_then() -> None:
    window = opened(4, limit=4)
    first, second = window.begin(), window.begin()
    window.overloaded(first, until=30.0)
    window.overloaded(second, until=20.0)
    assert window.wait(12.0) == 18.0
    assert window.wait(30.0) == 0
    window.begin(), window.begin()
    assert window.wait(30.0) is None


def test_it_settles_around_what_a_service_bears() -> None:
    capacity, window, generator = 10, Window(64), random.Random(1)
    flying: list[int] = []
    refused = answered = 0
    sizes = []
    for step in range(4000):
        while window.wait(0.0) == 0:
            began = window.begin()
            if len(flying) >= capacity:
                window.overloaded(began)
                refused += 1
            else:
                flying.append(began)
        window.answered(flying.pop(generator.randrange(len(flying))))
        answered += 1
        if step > 200:
            sizes.append(window.size)
    assert max(sizes) <= capacity + 1
    assert min(sizes) >= capacity // 2
    # A saw between 5 and 11 is 8 on average, and meets the top once in five or six rounds.
    assert 6.5 < sum(sizes) / len(sizes) < 9.5
    assert refused < 0.05 * answered
