from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import mir_eval
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.labels import BITS
from cradle_lib.scoring.conventions import LEVELS, Conventions, Rows
from cradle_lib.scoring.counts import count
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.occurrences import first_only
from cradle_lib.scoring.timing import timing
from cradle_lib.scoring.windows import curve, level_steps, window_tallies
from cradle_lib.statistics.matching import Window, match, occurrences

AO, SHO, DVP = BITS["alert_ongoing"], BITS["confirm_SH_ongoing"], BITS["confirm_DV_past"]
mask = st.one_of(st.sampled_from([0, 0, AO, SHO, AO | SHO, DVP]), st.integers(0, 65535))
dialogue = st.lists(st.tuples(mask, mask), min_size=1, max_size=9)
dialogues = st.lists(dialogue, min_size=1, max_size=5)
sides = st.sampled_from([0.0, 1.0, 2.0, 3.0, math.inf])


def rows_of(turns: Sequence[Sequence[tuple[int, int]]]) -> Rows:
    owner = np.repeat(np.arange(len(turns)), [len(d) for d in turns])
    gold, tags = (np.array([turn[k] for d in turns for turn in d], dtype=np.uint16) for k in (0, 1))
    return Rows(gold, tags, owner, np.ones(len(owner), dtype=np.bool_))


def largest_matching(gold: list[int], tags: list[int], early: float, late: float) -> int:
    """A general matching algorithm, which knows nothing of points on a line."""
    if not gold or not tags:
        return 0
    fits = [[-early <= tag - g <= late for tag in tags] for g in gold]
    found = maximum_bipartite_matching(csr_array(np.array(fits, dtype=np.int8)))
    return int((found >= 0).sum())


@settings(deadline=None, max_examples=100)
@given(dialogues, sides, sides)
def test_pairs_are_a_largest_matching(
    turns: list[list[tuple[int, int]]], early: float, late: float
) -> None:
    rows, n = rows_of(turns), len(turns)
    found = match(
        occurrences(rows.gold, rows.dialogue_of),
        occurrences(rows.predicted, rows.dialogue_of),
        Window(early, late),
        n,
    )
    for d, label in itertools.product(range(n), range(16)):
        gold, tags = ([k for k, t in enumerate(turns[d]) if t[s] >> label & 1] for s in (0, 1))
        assert found[d, label] == largest_matching(gold, tags, early, late)


def test_greedy_matching_by_distance_would_lose_a_pair() -> None:
    # Gold on turns 0 and 2, tags on 1 and 3, one turn early or late. Taking tag 1 for gold 2
    # first leaves gold 0 alone; the largest matching is 0-1 and 2-3.
    rows = rows_of([[(AO, 0), (0, AO), (AO, 0), (0, AO)]])
    pairs, sizes = window_tallies(rows, 1, (Window(1, 1), Window(0, 0)))
    assert pairs.sum(axis=(0, 2)).tolist() == [2, 0]
    assert sizes.sum(axis=(0, 2)).tolist() == [4, 2]


@settings(deadline=None, max_examples=60)
@given(dialogues)
def test_a_curve_starts_at_turn_level_and_ends_at_dialogue_level(
    turns: list[list[tuple[int, int]]],
) -> None:
    rows, n = rows_of(turns), len(turns)
    windows = (*curve("either"), *curve("either_first"))
    pairs, sizes = window_tallies(rows, n, windows)
    turn = count(rows.gold, rows.predicted, rows.dialogue_of, n, level="turn").tallies
    whole = count(rows.gold, rows.predicted, rows.dialogue_of, n, level="dialogue").tallies
    assert np.array_equal(pairs[:, 0], turn[..., 0])
    assert np.array_equal(sizes[:, 0], 2 * turn[..., 0] + turn[..., 1] + turn[..., 2])
    assert np.array_equal(pairs[:, -1], whole[..., 0])
    assert np.array_equal(sizes[:, 1], 2 * whole[..., 0] + whole[..., 1] + whole[..., 2])
    # A wider window can only help.
    width = len(windows) // 2
    assert (np.diff(pairs[:, :width], axis=1) >= 0).all()


@settings(deadline=None, max_examples=60)
@given(dialogues)
def test_first_occurrences_are_those_that_a_loop_keeps(
    turns: list[list[tuple[int, int]]],
) -> None:
    rows = rows_of(turns)
    expected = []
    for d in turns:
        seen = 0
        for gold, _ in d:
            expected.append(gold & ~seen)
            seen |= gold
    assert first_only(rows.gold, rows.dialogue_of).tolist() == expected


@pytest.mark.parametrize(
    "conventions",
    [
        Conventions(orphans=o, unparsed=u)
        for o in ("ignore", "attach", "count")
        for u in ("miss", "none", "exclude")
    ],
    ids=str,
)
def test_both_ends_equal_the_papers_tables_under_every_convention(
    make_corpus: Callable[..., Corpus],
    make_predictions: Callable[..., Predictions],
    conventions: Conventions,
) -> None:
    corpus = make_corpus(
        [
            [("U", AO), ("L", 0), ("U", 0), ("L", SHO), ("U", SHO), ("U", SHO)],
            [("U", 0), ("L", DVP), ("U", DVP), ("U", AO)],
        ]
    )
    run = make_predictions(corpus, [0, AO, 0, 0, DVP, 0, 0], outcomes="ooouoor")
    found = timing(run, conventions=conventions, draws=50)
    found = found[found["scope"] == "any"].set_index(["measure", "turns"])
    for level, name, width in (("turn", "either", 0.0), ("dialogue", "either_first", math.inf)):
        scored = evaluate(run, level=level, conventions=conventions, draws=50)
        [mine] = found.loc[[(name, width)], ["value", "low", "high"]].to_numpy()
        expected = [*scored.estimate("micro_f1")]
        assert mine.tolist() == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_a_late_only_window_forgives_no_early_tag() -> None:
    rows = rows_of([[(0, AO), (AO, 0), (0, SHO), (0, 0), (0, 0)], [(SHO, 0), (0, SHO)]])
    late, either = curve("late")[1], curve("either")[1]
    pairs, _ = window_tallies(rows, 2, (late, either))
    # The early alert fits the two-sided window only; SH one turn late fits both.
    assert pairs.sum(axis=(0, 2)).tolist() == [1, 2]


@pytest.mark.parametrize(("early", "late"), [(-1, 0), (0, -0.5), (math.nan, 1)])
def test_a_window_that_nothing_fits_is_refused(early: float, late: float) -> None:
    with pytest.raises(ScoringError, match="at least 0"):
        Window(early, late)


@settings(deadline=None, max_examples=60)
@given(dialogues, st.sampled_from([0.0, 1.0, 2.0]))
def test_pairs_are_those_that_onset_evaluation_in_music_counts(
    turns: list[list[tuple[int, int]]], width: float
) -> None:
    # mir_eval.util.match_events: a maximum matching of events at most `window` apart, as in
    # the scoring of note onsets (Raffel et al. 2014); turns stand for seconds.
    rows, n = rows_of(turns), len(turns)
    found = match(
        occurrences(rows.gold, rows.dialogue_of),
        occurrences(rows.predicted, rows.dialogue_of),
        Window(width, width),
        n,
    )
    for d, label in itertools.product(range(n), range(16)):
        gold, tags = (
            np.array([k for k, t in enumerate(turns[d]) if t[s] >> label & 1], dtype=float)
            for s in (0, 1)
        )
        expected = (
            len(mir_eval.util.match_events(gold, tags, width)) if len(gold) * len(tags) else 0
        )
        assert found[d, label] == expected


def steps_of(run: Predictions, **options: int) -> dict[str, float]:
    frame = level_steps(run, **{"draws": 0, **options})
    return dict(zip(frame["measure"], frame["value"], strict=True))


def test_forgiving_the_turn_is_one_step_and_dropping_repeats_another(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> None:
    # An alert on turn 0, tagged on turns 0, 1 and 2: no moment is wrong, and yet F1 rises from
    # 2/4 to 1, all of it by dropping repeats. A confirm on turn 0 tagged on turn 2, once: from 0 to
    # 1, all of it by forgiving the turn.
    repeated = make_corpus([[("U", AO), ("U", 0), ("U", 0)]])
    found = steps_of(make_predictions(repeated, [AO, AO, AO]))
    assert found == {
        "turn": 0.5, "any_turn": 0.5, "dialogue": 1, "turn_forgiven": 0, "repeats_dropped": 0.5
    }  # fmt: skip
    moved = make_corpus([[("U", SHO), ("U", 0), ("U", 0)]])
    found = steps_of(make_predictions(moved, [0, 0, SHO]))
    assert found == {
        "turn": 0, "any_turn": 1, "dialogue": 1, "turn_forgiven": 1, "repeats_dropped": 0
    }  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(turns=dialogues)
def test_both_steps_are_those_of_a_loop_and_lead_from_level_to_level(
    make_corpus: Callable[..., Corpus],
    make_predictions: Callable[..., Predictions],
    turns: list[list[tuple[int, int]]],
) -> None:
    corpus = make_corpus([[("U", gold) for gold, _ in d] for d in turns])
    run = make_predictions(corpus, [tag for d in turns for _, tag in d])
    found = steps_of(run)
    if not corpus.gold.any():
        assert np.isnan([*found.values()]).all()
        return
    ends = [evaluate(run, level=x, draws=0).estimate("micro_f1").value for x in LEVELS[:2]]
    assert [found["turn"], found["dialogue"]] == pytest.approx(ends)
    # Wherever they stand, as many can be paired as the rarer side has.
    often = [[[t[s] >> b & 1 for t in d] for s in (0, 1)] for d in turns for b in range(16)]
    pairs = sum(min(sum(gold), sum(tags)) for gold, tags in often)
    assert found["any_turn"] == pytest.approx(
        2 * pairs / sum(sum(gold) + sum(tags) for gold, tags in often)
    )
    assert found["turn_forgiven"] == pytest.approx(found["any_turn"] - found["turn"])
    assert found["repeats_dropped"] == pytest.approx(found["dialogue"] - found["any_turn"])
    assert found["turn_forgiven"] >= 0
