"""How many calls may be in flight, worked out by hand."""

from __future__ import annotations

from cradle_lib.detection.api.dispatch import Admission


def size(admission: Admission) -> int:
    return next(flying for flying in range(99) if not admission.admits(flying, 0.0))


def rounds(admission: Admission, count: int) -> list[int]:
    """The number at the begin of each round, in which as many calls as may all come back."""
    found = []
    for now in range(1, count + 1):
        found.append(size(admission))
        for _ in range(size(admission)):
            admission.answered(now)
    return found


def test_a_run_begins_with_one_call_then_ten_and_doubles_with_each_round_trip() -> None:
    # Not 80 after 40: the limit is 64.
    assert rounds(Admission(64), 6) == [1, 10, 20, 40, 64, 64]
    assert rounds(Admission(3), 3) == [1, 3, 3]
    assert rounds(Admission(0), 2) == [1, 1]


def test_a_burst_of_refusals_halves_the_number_once_and_then_it_grows_by_one_a_round() -> None:
    admission = Admission(16)
    rounds(admission, 3)
    for _ in range(12):
        admission.overloaded(began=5.0, now=6.0)
    # Calls of the same burst that came through tell nothing new either.
    for _ in range(4):
        admission.answered(began=5.0)
    assert size(admission) == 8
    # 8 + 1/8 + 1/8.125 + ... (eight times) is 8.94; then 9.80 and 10.69.
    found = []
    for _ in range(3):
        for _ in range(size(admission)):
            admission.answered(began=7.0)
        found.append(size(admission))
    assert found == [8, 9, 10]


def test_one_call_is_always_left() -> None:
    admission = Admission(4)
    for now in (1.0, 2.0, 3.0):
        admission.overloaded(began=now, now=now)
        assert size(admission) == 1


def test_a_service_that_names_a_time_is_left_alone_until_then() -> None:
    admission = Admission(4)
    admission.shut(30.0)
    admission.shut(20.0)
    assert not admission.admits(0, 29.9)
    assert admission.admits(0, 30.0)
