"""Counts implied by published scores, compared with an exhaustive search over printed digits."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cradle_lib.published import Published, published_table
from cradle_lib.scoring.analyses.implied import (
    implied_scores,
    possible_counts,
    possible_totals,
    rounds_to,
)


def percent(text: str) -> Published:
    return Published("result", float(text), text, "percent", "Sec 5", "")


def count(number: int) -> Published:
    return Published("errors", number, str(number), "count", "Sec 6.1", "")


def printed(part: int, total: int, rounding: str = ROUND_HALF_EVEN) -> str:
    """Prints a share in percent, rounded to two decimals from 28 digits."""
    return str((Decimal(100) * part / total).quantize(Decimal("0.01"), rounding))


totals = st.integers(1, 40)


@settings(deadline=None, max_examples=40)
@given(totals, st.integers(1, 10_000), st.booleans(), st.booleans())
def test_possible_counts_equal_an_exhaustive_search(
    gold: int, hundredths: int, with_recall: bool, as_precision: bool
) -> None:
    text = f"{hundredths / 100:.2f}"
    # With more false positives, no F1 or precision can be that high.
    most = int(4 * gold / (hundredths / 10_000)) + 2
    assume(most < 400)
    stated = {"precision" if as_precision else "f1": percent(text)}
    if with_recall:
        stated["recall"] = percent("50.00")
    tried = set()
    for tp in range(gold + 1):
        if with_recall and printed(tp, gold) != "50.00":
            continue
        for fp in range(most):
            part, total = (tp, tp + fp) if as_precision else (2 * tp, tp + fp + gold)
            shown = (
                {printed(part, total, r) for r in (ROUND_HALF_EVEN, ROUND_HALF_UP)}
                if total
                else {"0.00"}
            )
            if text in shown:
                tried.add((tp, fp))
    found = possible_counts([gold], **stated)
    # Additional solutions are halves that were rounded down.
    extra = set(zip(found["tp"], found["fp"].astype(int), strict=True)) - tried
    assert tried <= set(zip(found["tp"], found["fp"].astype(int), strict=True))
    for tp, fp in extra:
        part, total = (tp, tp + fp) if as_precision else (2 * tp, tp + fp + gold)
        assert Fraction(10_000 * part, total) - hundredths == Fraction(1, 2)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 300), st.integers(0, 10_000))
def test_a_total_is_possible_if_a_share_rounds_to_the_value(total: int, hundredths: int) -> None:
    stated = percent(f"{hundredths / 100:.2f}")
    assert (possible_totals(stated, [total]) == [total]) == any(
        rounds_to(part, total, stated) for part in range(total + 1)
    )


def test_published_scores_have_one_solution_with_711_gold_labels_only() -> None:
    # By hand: 64.56 % of 711 is 459; with 1,609 false positives the F1 is 918/2,779 = 33.03 %.
    stated = published_table()
    found = possible_counts(
        [703, 711, 713],
        recall=stated["result.turn.micro_recall.qwen2.5-72b"],
        f1=stated["result.turn.micro_f1.qwen2.5-72b"],
        fp=stated["errors.fp.qwen2.5-72b"],
    )
    assert found[["gold", "tp", "fp", "fn"]].to_numpy().tolist() == [[711, 459, 1609, 252]]


def test_implied_scores_follow_from_the_published_counts() -> None:
    # By hand, from 711 gold labels: 442 missed and 285 added leave 269 found; 447 missed leave 264.
    frame = implied_scores().set_index(["system", "score"])["value"]
    found = {
        ("qwen3-14b", name): frame["qwen3-14b", f"micro_{name}"] for name in ("precision", "f1")
    }
    assert found == {
        ("qwen3-14b", "precision"): pytest.approx(269 / (269 + 285)),
        ("qwen3-14b", "f1"): pytest.approx(2 * 269 / (2 * 269 + 285 + 442)),
    }
    assert frame["gpt-oss-20b", "micro_recall"] == pytest.approx(264 / 711)
    # Published values are not derived, and values with many solutions are omitted.
    assert ("qwen3-32b", "micro_f1") not in frame.index
    assert "claude" not in frame.index.get_level_values("system")
