"""Guesses from earlier answers: what they say, when they are silent, and how sure they are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.detection.engines import draft
from cradle_lib.detection.engines.draft import ALL, DOUBT, END, OWN, Drafts, Habits

answers = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=9), min_size=1, max_size=30)


def taught(*written: list[int]) -> Habits:
    """Habits after some answers, each of a dialogue of its own."""
    everyone = Habits()
    for answer in written:
        Drafts(everyone).learn([*answer, END])
    return everyone


def test_nothing_is_guessed_before_anything_was_written() -> None:
    assert Drafts(Habits()).guess([], 0.0, 9) == []


def test_a_usual_answer_is_guessed_to_its_end_and_no_further() -> None:
    drafts = Drafts(taught(*[[5, 6, 7]] * 40))
    assert drafts.guess([], 0.5, 9) == [5, 6, 7]
    assert drafts.guess([5], 0.5, 9) == [6, 7]
    assert drafts.guess([], 0.5, 2) == [5, 6]
    assert drafts.guess([5, 6, 7], 0.5, 9) == []
    assert drafts.guess([], 0.5, 0) == []


def test_the_probability_is_that_of_the_whole_guess() -> None:
    # Three of four answers begin with 1, and after it two of three go on with 2.
    drafts = Drafts(taught([1, 2], [1, 2], [1, 3], [4]))
    first, second = 3 / (4 + DOUBT), 2 / (3 + DOUBT)
    whole = first * second
    assert drafts.guess([], whole - 1e-9, 9)[:2] == [1, 2]
    assert drafts.guess([], whole + 1e-9, 9) == [1]
    assert drafts.guess([], first + 1e-9, 9) == []


def test_a_dialogues_own_habit_outweighs_that_of_all() -> None:
    everyone = taught(*[[1]] * 50)
    odd, other = Drafts(everyone), Drafts(everyone)
    odd.learn([2, END])
    share = (OWN + ALL / 51) / (OWN + ALL + DOUBT)
    assert odd.guess([], share - 1e-9, 1) == [2]
    assert odd.guess([], share + 1e-9, 1) == []
    assert other.guess([], 0.5, 1) == [1]


def test_what_is_learned_piece_by_piece_is_what_is_learned_at_once() -> None:
    piecewise, at_once = Habits(), Habits()
    drafts = Drafts(piecewise)
    drafts.learn([1], 0)
    drafts.learn([1, 2, 3], 1)
    drafts.learn([1, 2, 3, END], 3)
    Drafts(at_once).learn([1, 2, 3, END])
    assert piecewise.followed == at_once.followed


def test_memory_is_bounded_and_what_is_known_is_still_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    everyone = taught([1, 2, 3])
    monkeypatch.setattr(draft, "MOST", len(everyone.followed))
    drafts = Drafts(everyone)
    drafts.learn([1, 2, 3, END])
    drafts.learn([7, 8, 9, END])
    assert len(everyone.followed) == draft.MOST
    assert Drafts(everyone).guess([], 0.4, 9) == [1, 2, 3]


@settings(deadline=None, max_examples=200)
@given(written=answers, sure=st.floats(0, 1), most=st.integers(0, 12))
def test_a_guess_goes_on_as_some_answer_did(
    written: list[list[int]], sure: float, most: int
) -> None:
    everyone = taught(*written)
    for answer in written:
        for place in range(len(answer) + 1):
            guess = Drafts(everyone).guess(answer[:place], sure, most)
            assert len(guess) <= most
            assert END not in guess
            for step, token in enumerate(guess):
                # Some answer has this token after the same two, or begins so.
                before = [-1, -1, *answer[:place], *guess[:step]][-2:]
                assert any(
                    [-1, -1, *other][i : i + 3] == [*before, token]
                    for other in written
                    for i in range(len(other))
                )


@settings(deadline=None, max_examples=100)
@given(written=answers, low=st.floats(0, 1), high=st.floats(0, 1))
def test_more_certainty_guesses_less(written: list[list[int]], low: float, high: float) -> None:
    everyone = taught(*written)
    low, high = min(low, high), max(low, high)
    bold, careful = (Drafts(everyone).guess([], sure, 20) for sure in (low, high))
    assert bold[: len(careful)] == careful
