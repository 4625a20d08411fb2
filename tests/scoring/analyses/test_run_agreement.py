"""Agreement of two runs, compared with SciPy and a worked example."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.analyses.run_agreement import rate, run_agreement


def made(dialogue: str, turn: int, answer: str = "none", **more: Any) -> dict[str, Any]:
    place = {"dialogue": dialogue, "turn": turn, "question": f"{dialogue}.{turn}"}
    return place | {"answer": answer, "predicted": "none", "outcome": "ok"} | more


def compared(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    frame = run_agreement(pd.DataFrame(one), pd.DataFrame(two))
    return frame.set_index("measure").to_dict("index")


def counts(found: dict[str, dict[str, Any]]) -> dict[str, tuple[int, int]]:
    return {name: (row["count"], row["of"]) for name, row in found.items()}


def test_a_flip_is_a_difference_of_predictions() -> None:
    one = [
        made("d1", 0, "none"),
        made("d1", 2, "alert_ongoing", predicted="alert_ongoing"),
        made("d1", 4, "none\nthis"),
        made("d2", 0, "hm\n"),
        made("d2", 2, "well", outcome="unparsed"),
        made("d3", 0, "only here"),
    ]
    two = [
        made("d1", 0, "none\nmore that nobody reads"),
        made("d1", 2, "alert_past", predicted="alert_past"),
        made("d1", 4, "none\nthat", predicted="alert_past", question="another one"),
        made("d2", 0, "hm\nand on", outcome="unparsed"),
        made("d2", 2, "Well, no", outcome="unparsed"),
    ]
    found = compared(one, two)
    assert counts(found) == {
        "same question": (4, 5),
        "same text": (0, 5),
        "one begins the other": (2, 5),
        "same line": (1, 5),
        "other line": (2, 5),
        "same outcome": (4, 5),
        "same tags": (3, 5),
        # The predictions for the last turn agree, because neither answer is usable.
        "neither read": (1, 5),
        "flipped turns": (3, 5),
        # The middle turn had another prompt, because of the flip before it.
        "first flips": (2, 5),
        "flipped dialogues": (2, 2),
    }
    assert found["flipped turns"]["value"] == pytest.approx(0.6)


def test_runs_over_different_dialogues_are_refused() -> None:
    with pytest.raises(ScoringError, match="no user turn in common"):
        compared([made("d1", 0)], [made("d1", 2)])


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 3000), st.data())
def test_the_interval_equals_scipys(of: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, of))
    value, low, high = rate(hits, of)
    side = "less" if hits == 0 else "greater" if hits == of else "two-sided"
    expected = binomtest(hits, of, alternative=side).proportion_ci(0.95, method="exact")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert low <= value == hits / of <= high
