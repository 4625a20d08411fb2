"""Agreement, compared with scikit-learn, NLTK, krippendorff, SciPy and published examples."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.metrics import masi_distance
from nltk.metrics.agreement import AnnotationTask
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching
from sklearn.metrics import cohen_kappa_score, f1_score, jaccard_score
from statsmodels.stats.proportion import proportion_confint

from cradle_lib.annotation.agreement import ALL_LABELS, MEASURES, agreement, agreement_frame
from cradle_lib.annotation.pairs import UNITS, Pair, Units, masi, pairs, tally
from cradle_lib.annotation.table import Annotations
from cradle_lib.errors import CorpusError
from cradle_lib.labels import BITS, LABELS, labels_of
from cradle_lib.statistics.weighted_sums import draw_weights

from .hand_study import hand_study

FIRST = LABELS[0]
Dialogues = Sequence[tuple[Sequence[int], Sequence[int]]]


def pair(dialogues: Dialogues, asked: Sequence[Sequence[bool]] | None = None) -> Pair:
    masks = tuple(np.array(two, dtype=np.uint16) for two in dialogues)
    turns = tuple(
        np.array(asked[i] if asked else [True] * len(two[0])) for i, two in enumerate(dialogues)
    )
    return Pair("A", "B", tuple(f"d{i:04d}" for i in range(len(masks))), masks, turns)


def table(a: int, b: int, c: int, d: int) -> Pair:
    """Makes two annotators of one label from turns of both, the first, the second and neither."""
    one = [1] * (a + b) + [0] * (c + d)
    other = [1] * a + [0] * b + [1] * c + [0] * d
    return pair([(one, other)])


Found = dict[str, dict[str, Any]]


def by_label(frame: pd.DataFrame) -> Found:
    """Returns the rows of each label by measure."""
    return {
        str(label): {row.measure: row for row in rows.itertuples()}
        for label, rows in frame.groupby("label", observed=True)
    }


def measured(chosen: Pair, units: Units = "user", draws: int = 0) -> Found:
    return by_label(agreement([chosen], units=units, draws=draws))


def test_ac1_of_gwets_example_in_which_kappa_is_negative() -> None:
    # Gwet (2002): 118, 5, 2, 0 of 125. p = 118/125. Kappa's chance = 123*120/125^2 + 2*5/125^2 =
    # 14770/15625 = 0.94528: kappa = -0.00128/0.05472. AC1: pi = 243/250, chance = 2*243*7/250^2 =
    # 0.054432: (0.944 - 0.054432) / 0.945568 = 0.9408.
    found = measured(table(118, 5, 2, 0))[FIRST]
    assert found["kappa"].value == pytest.approx(-0.00128 / 0.05472)
    assert found["ac1"].value == pytest.approx(0.889568 / 0.945568)
    assert found["pabak"].value == pytest.approx(2 * 118 / 125 - 1)


sets = st.integers(0, 2**16 - 1).map(lambda bits: bits & random.Random(bits).getrandbits(16))
few = st.sampled_from([0, 0, 0, 1, 2, 3, 4, 12])
two = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        st.lists(few, min_size=n, max_size=n), st.lists(few, min_size=n, max_size=n)
    )
)
many = st.lists(two, min_size=1, max_size=5)


@settings(deadline=None, max_examples=50)
@given(one=sets, other=sets)
def test_masi_equals_nltks_where_nltk_defines_it(one: int, other: int) -> None:
    if one | other:
        theirs = masi_distance(frozenset(labels_of(one)), frozenset(labels_of(other)))
        assert masi(one, other) == pytest.approx(theirs, abs=0.02)  # NLTK rounds 2/3 to 0.67


@settings(deadline=None, max_examples=10)
@given(dialogues=many)
def test_every_measure_equals_that_of_another_library(dialogues: Dialogues) -> None:
    chosen = pair(dialogues)
    one, other = np.concatenate([np.array(two) for two in dialogues], axis=1)
    for units in ("user", "labelled"):
        keep = (one | other) != 0 if units == "labelled" else np.ones(len(one), dtype=bool)
        a, b = one[keep], other[keep]
        found = measured(chosen, units)
        for label, bit in BITS.items():
            x, y = (a & bit) != 0, (b & bit) != 0
            ours = found[label]
            if not (x | y).any():
                assert all(math.isnan(ours[name].value) for name in MEASURES)
                continue
            assert ours["f1"].value == pytest.approx(f1_score(x, y))
            assert ours["jaccard"].value == pytest.approx(jaccard_score(x, y))
            assert ours["exact_match"].value == pytest.approx((x == y).mean())
            if len({*x} | {*y}) == 1:
                assert math.isnan(ours["kappa"].value)
                assert math.isnan(ours["alpha"].value)
            else:
                assert ours["kappa"].value == pytest.approx(cohen_kappa_score(x, y))
                theirs = krippendorff.alpha(
                    np.array([x, y], dtype=int), level_of_measurement="nominal"
                )
                assert ours["alpha"].value == pytest.approx(theirs)
        overall = found[ALL_LABELS]
        if not (a | b).any():
            assert math.isnan(overall["kappa"].value)
            continue
        flat_a, flat_b = (((m[:, None] & np.array([*BITS.values()])) != 0).ravel() for m in (a, b))
        assert overall["kappa"].value == pytest.approx(cohen_kappa_score(flat_a, flat_b))
        assert overall["f1"].value == pytest.approx(f1_score(flat_a, flat_b))
        assert overall["exact_match"].value == pytest.approx((a == b).mean())
        if len({*a} | {*b}) == 1:
            assert math.isnan(overall["alpha_masi"].value)
            continue
        theirs = krippendorff.alpha(np.array([a, b]), level_of_measurement="nominal")
        assert overall["alpha"].value == pytest.approx(theirs)
        # "none" replaces the empty set, because NLTK divides by zero on two empty sets.
        data = [
            (who, str(turn), frozenset(labels_of(int(mask)) or ["none"]))
            for who, masks in (("a", a), ("b", b))
            for turn, mask in enumerate(masks)
        ]
        theirs = AnnotationTask(data, distance=masi_distance).alpha()
        assert overall["alpha_masi"].value == pytest.approx(theirs, abs=0.02)


places = st.lists(st.integers(0, 11), max_size=6, unique=True)


@settings(deadline=None, max_examples=50)
@given(one=places, other=places, users=st.lists(st.booleans(), min_size=12, max_size=12))
def test_matches_within_a_window_are_a_maximum_matching(
    one: list[int], other: list[int], users: list[bool]
) -> None:
    two = [[int(turn in given) for turn in range(12)] for given in (one, other)]
    found = tally([pair([(two[0], two[1])], asked=[users])], "all").matched[0, 0]
    # A label on another row counts for the user turn before it.
    near = [[max(sum(users[: turn + 1]) - 1, 0) for turn in given] for given in (one, other)]
    for window, count in zip((0, 1, 2), found, strict=True):
        fits = [[abs(a - b) <= window for b in near[1]] for a in near[0]]
        expected = 0
        if one and other:
            partner = maximum_bipartite_matching(csr_matrix(fits), perm_type="column")
            expected = int((partner >= 0).sum())
        assert count == expected


def test_unit_sets_differ_only_in_unlabelled_turns() -> None:
    chosen = pair([([1, 0, 0, 4], [1, 0, 2, 0])], asked=[[True, True, True, False]])
    turns = {units: measured(chosen, units)[FIRST]["f1"].turns for units in UNITS}
    assert turns == {"labelled": 3, "user": 3, "all": 4}
    labelled, everything = measured(chosen, "labelled"), measured(chosen, "all")
    for name in ("jaccard", "f1"):
        assert labelled[ALL_LABELS][name].value == everything[ALL_LABELS][name].value
    assert labelled[ALL_LABELS]["kappa"].value < everything[ALL_LABELS]["kappa"].value


def test_intervals_equal_those_of_resampled_dialogues() -> None:
    chance = random.Random(2)
    dialogues = [
        tuple([chance.choice([0, 0, 1, 2]) for _ in range(6)] for _ in range(2)) for _ in range(30)
    ]
    found = by_label(agreement([pair(dialogues)], units="user", draws=25, seed=4))
    block = draw_weights(np.random.default_rng(4), 25, 30)
    one_by_one = [
        measured(pair([dialogues[i] for i in np.repeat(np.arange(30), row)])) for row in block
    ]
    for name in ("kappa", "alpha_masi", "within_1", "exact_match"):
        drawn = [result[ALL_LABELS][name].value for result in one_by_one]
        low, high = np.percentile(drawn, [2.5, 97.5])
        estimate = found[ALL_LABELS][name]
        assert (estimate.low, estimate.high) == (pytest.approx(low), pytest.approx(high))
        assert estimate.low <= estimate.value <= estimate.high


def test_an_interval_of_zero_width_is_undefined() -> None:
    alone = measured(pair([([1, 0, 1], [1, 1, 0])]), draws=50)
    spotless = measured(pair([([1, 0], [1, 0])] * 9), draws=50)
    for found in (alone, spotless):
        assert not math.isnan(found[ALL_LABELS]["kappa"].value)
        assert math.isnan(found[ALL_LABELS]["kappa"].low)


def test_pairs_are_selected_by_team_and_round_without_adjudicators() -> None:
    study = hand_study()
    assert [(p.first, p.second, len(p.dialogues)) for p in pairs(study)] == [
        ("A", "B", 2),
        ("C", "D", 2),
    ]
    [only] = pairs(study, team="2", round_=1)
    assert (only.first, only.second) == ("C", "D")
    with pytest.raises(CorpusError, match="no annotations of team 3"):
        pairs(study, team="3")
    kept = [e for e in study.entries if (e.dialogue, e.annotator) != ("d0003", "D")]
    with pytest.raises(CorpusError, match="dialogue d0003: labelled by 1 annotators"):
        pairs(Annotations.of(study.corpus, kept))


def test_rounds_are_separate_or_pooled() -> None:
    study = hand_study()
    entries = [replace(e, round=2 if e.dialogue == "d0001" else 1) for e in study.entries]
    later = Annotations.of(study.corpus, entries)
    apart = agreement_frame(later, draws=0)
    found = apart[["team", "round"]].drop_duplicates().to_numpy().tolist()
    assert found == [["1", 1], ["1", 2], ["2", 1]]
    together = agreement_frame(later, by_round=False, units=["all"], draws=0)
    assert together["round"].isna().all()
    exact = "team == '1' and label == 'all labels' and measure == 'exact_match'"
    assert together.query(exact)["value"].item() == pytest.approx(7 / 8)
    assert together[["low", "high"]].isna().all(axis=None)


def test_jaccard_and_f1_of_a_label_have_wilson_intervals() -> None:
    # One unit per dialogue, so that units are independent: 4 of 7 agree.
    dialogues: Dialogues = [*[([1], [1])] * 4, *[([1], [0])] * 2, ([0], [1])]
    found = measured(pair(dialogues), draws=200)[FIRST]
    low, high = proportion_confint(4, 7, method="wilson")
    assert (found["jaccard"].low, found["jaccard"].high) == pytest.approx((low, high))
    for name in ("f1", "within_1"):
        ends = (2 * low / (1 + low), 2 * high / (1 + high))
        assert (found[name].low, found[name].high) == pytest.approx(ends)
    # Perfect agreement has an interval, too.
    never = measured(pair([([1], [1])] * 3), draws=200)[FIRST]["jaccard"]
    assert (never.value, never.high) == (1, 1)
    assert never.low == pytest.approx(proportion_confint(3, 3, method="wilson")[0])
