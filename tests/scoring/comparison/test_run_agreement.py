"""Flips between two runs, against SciPy, worked fractions and a loop over turns."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from cradle_lib.detection import Outcome, Prediction
from cradle_lib.errors import ScoringError
from cradle_lib.scoring.comparison.run_agreement import TEXTS, flips, rate


def made(
    dialogue: str, turn: int, answer: str = "none", mask: int = 0, **more: object
) -> Prediction:
    return Prediction(dialogue, turn, f"{dialogue}.{turn}", answer, mask, Outcome.OK, **more)  # type: ignore[arg-type]


def test_two_equal_runs_never_flip_and_the_rule_of_three_bounds_it() -> None:
    run = [made(f"d{i:04}", turn) for i in range(40) for turn in range(5)]
    found = flips(run, list(reversed(run)))
    assert (found.turns, found.dialogues, found.same_question) == (200, 40, 200)
    assert found.texts == {"identical": 200, "beginning": 0, "same line": 0, "different": 0}
    assert (found.tags, found.outcomes, found.flipped, found.first_flips) == (200, 200, (), 0)
    # 1 - 0.05^(1/40) = 0.0722, of which the rule of three says 3/40 = 0.075.
    assert found.dialogue_rate == pytest.approx((0, 0, 0.0722), abs=5e-5)
    assert found.turn_rate[2] == pytest.approx(3 / 200, rel=0.01)


def test_a_flip_is_a_difference_in_what_is_read() -> None:
    one = [
        made("d1", 0, "none"),
        made("d1", 2, "alert_ongoing", 1),
        made("d1", 4, "none"),
        made("d2", 0, "hm\n"),
        made("d2", 2, "well"),
        made("d3", 0, "only here"),
    ]
    two = [
        made("d1", 0, "none\nmore that nobody reads"),
        made("d1", 2, "alert_past", 2),
        replace(made("d1", 4, "alert_past", 2), key="another question"),
        replace(made("d2", 0, "hm\nand on"), outcome=Outcome.OK),
        replace(made("d2", 2, "Well, no"), outcome=Outcome.UNPARSED),
    ]
    found = flips(one, two)
    assert (found.turns, found.dialogues) == (5, 2)
    assert found.flipped == (("d1", 2), ("d1", 4), ("d2", 2))
    # The one in the middle was asked something else, because of the flip before it.
    assert (found.same_question, found.first_flips, found.flipped_dialogues) == (4, 2, 2)
    assert (found.tags, found.outcomes) == (3, 4)
    assert found.texts == {"identical": 0, "beginning": 2, "same line": 0, "different": 3}
    # 3 of 5 turns.
    assert found.turn_rate[0] == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("none", "none", "identical"),
        ("none", "none\n\nwhy", "beginning"),
        ("none\n", "none", "beginning"),
        ("none\nthis", "none\nthat", "same line"),
        ("\nnone\n", "none\nthat", "same line"),
        ("none", "nonesense", "different"),
        ("", "none", "different"),
    ],
)
def test_raw_texts_compare_as_they_read(one: str, other: str, kind: str) -> None:
    for a, b in ((one, other), (other, one)):
        found = flips([made("d1", 0, a)], [made("d1", 0, b)])
        assert found.texts == {name: int(name == kind) for name in TEXTS}


def test_usage_adds_up_and_says_nothing_where_a_run_does_not_tell() -> None:
    one = [
        made("d1", t, tokens_in=100, tokens_cached=90, tokens_out=2, seconds=0.5) for t in range(4)
    ]
    two = [made("d1", t, tokens_in=100, seconds=2.0) for t in range(4)]
    first, second = flips(one, two).usage
    assert (first.tokens_in, first.tokens_cached, first.tokens_out) == (400, 360, 8)
    assert first.seconds == pytest.approx(2)
    assert (second.tokens_in, second.tokens_cached, second.tokens_out) == (400, None, None)
    assert second.seconds == pytest.approx(8)


def test_runs_over_different_dialogues_are_refused() -> None:
    with pytest.raises(ScoringError, match="no user turn in common"):
        flips([made("d1", 0)], [made("d1", 2)])
    for hits, of in ((1, 0), (-1, 3), (4, 3)):
        with pytest.raises(ScoringError, match="expected a count"):
            rate(hits, of)


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 3000), st.data())
def test_the_interval_is_scipys(of: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, of))
    value, low, high = rate(hits, of)
    side = "less" if hits == 0 else "greater" if hits == of else "two-sided"
    expected = binomtest(hits, of, alternative=side).proportion_ci(0.95, method="exact")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert low <= value == hits / of <= high


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["d1", "d2", "d3"]), st.integers(0, 5)),
        st.tuples(st.integers(0, 2), st.integers(0, 2)),
        min_size=1,
    )
)
def test_comparing_is_symmetric_and_agrees_with_a_loop(
    turns: dict[tuple[str, int], tuple[int, int]],
) -> None:
    one = [made(*place, f"answer {a}", a) for place, (a, _) in turns.items()]
    two = [made(*place, f"answer {b}", b) for place, (_, b) in turns.items()]
    found, turned = flips(one, two), flips(two, one)
    assert replace(found, usage=turned.usage) == turned
    flipped = sorted(place for place, (a, b) in turns.items() if a != b)
    assert list(found.flipped) == flipped
    assert found.flipped_dialogues == len({dialogue for dialogue, _ in flipped})
    assert found.texts["different"] == len(flipped) == found.turns - found.tags
