from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cradle_lib.labels import CONFIRM_MASK
from cradle_lib.scoring.conventions import LEVELS, Conventions, Level

from .made_runs import AO, DVP, SHO, counted

# Dialogue, gold mask, predicted mask, whether there is an answer.
Unit = tuple[int, int, int, bool]

# Frequent masks, mostly empty, and arbitrary masks.
masks = st.one_of(st.sampled_from([0, 0, 0, AO, SHO, AO | SHO, SHO | DVP]), st.integers(0, 65535))
rows = st.lists(st.tuples(st.integers(0, 5), masks, masks, st.booleans()), max_size=40).map(
    lambda found: sorted(found, key=lambda row: row[0])
)
conventions = st.builds(
    Conventions,
    empty_jaccard=st.sampled_from([0.0, 0.5, 1.0]),
    unparsed=st.sampled_from(["miss", "none", "exclude"]),
)


def by_sets(
    found: list[Unit], n: int, level: Level, chosen: Conventions
) -> tuple[NDArray[np.int64], list[list[Fraction]]]:
    """Does the same as ``count`` with Python sets, one unit at a time."""
    keep = CONFIRM_MASK if level == "confirm" else 65535

    def bits(mask: int) -> set[int]:
        return {i for i in range(16) if mask & keep & 1 << i}

    per_dialogue: list[list[tuple[set[int], set[int], bool]]] = [[] for _ in range(n)]
    for dialogue, gold, predicted, answered in found:
        if chosen.unparsed == "exclude" and not answered:
            continue
        usable = answered or chosen.unparsed == "none"
        per_dialogue[dialogue].append((bits(gold), bits(predicted) if answered else set(), usable))
    if level != "turn":
        per_dialogue = [
            [
                (
                    set().union(*(u[0] for u in units)),
                    set().union(*(u[1] for u in units)),
                    all(u[2] for u in units),
                )
            ]
            if units
            else []
            for units in per_dialogue
        ]
    tallies = np.zeros((n, 16, 3), dtype=np.int64)
    sets = []
    for dialogue, units in enumerate(per_dialogue):
        exact, jaccard = Fraction(0), Fraction(0)
        for gold, predicted, usable in units:
            for column, part in enumerate((gold & predicted, predicted - gold, gold - predicted)):
                tallies[dialogue, list(part), column] += 1
            if gold | predicted:
                exact += gold == predicted
                jaccard += Fraction(len(gold & predicted), len(gold | predicted))
            elif usable:
                exact += 1
                jaccard += Fraction(chosen.empty_jaccard)
        sets.append([Fraction(len(units)), exact, jaccard])
    return tallies, sets


@settings(deadline=None, max_examples=50)
@given(rows, st.sampled_from(LEVELS), conventions)
def test_counts_equal_python_sets(found: list[Unit], level: Level, chosen: Conventions) -> None:
    tallies, sets = by_sets(found, 7, level, chosen)
    dialogue_of, gold, predicted, answered = list(zip(*found, strict=True)) or [[]] * 4
    result = counted(
        gold, predicted, dialogue_of, 7, answered=answered, level=level, conventions=chosen
    )
    assert (result.tallies == tallies).all()
    assert result.sets == pytest.approx(np.array(sets, dtype=float), abs=1e-12)
    assert result.total == pytest.approx(result.rows.sum(axis=0), abs=1e-12)
