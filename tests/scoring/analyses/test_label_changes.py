"""Changes of gold labels between runs, compared with counts of the error taxonomy's pairs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.errors import ScoringError
from cradle_lib.labels import BITS, stage
from cradle_lib.scoring.analyses.label_changes import RESULTS, label_changes
from cradle_lib.scoring.label_pairs import label_pairs

from ..made_runs import make_corpus, make_predictions, run_of

SOME = ["alert_ongoing", "alert_past", "confirm_SH_ongoing", "confirm_SH_past", "confirm_DV_past"]
masks = st.sets(st.sampled_from(SOME), max_size=2).map(lambda names: sum(BITS[n] for n in names))
RESULT_OF = {"temporal_swap": "swapped", "missed_alert": "missed", "missed_confirm": "missed"}


@settings(deadline=None, max_examples=15)
@given(turns=st.lists(st.tuples(masks, masks, masks), min_size=2, max_size=8))
def test_label_changes_equal_counts_of_the_pairs(turns: list[tuple[int, int, int]]) -> None:
    golds, *predicted = (list(column) for column in zip(*turns, strict=True))
    half = len(golds) // 2
    corpus = make_corpus([[("U", g) for g in part] for part in (golds[:half], golds[half:])])
    runs = [make_predictions(corpus, tags) for tags in predicted]
    frame = label_changes(*runs, draws=0).set_index(["gold", "result"])
    rows = frame.to_dict("index")
    assert rows.keys() == {(name, result) for name, _ in rows for result in RESULTS}
    for when, run in zip(("before", "after"), runs, strict=True):
        pairs = label_pairs(run).query("gold != 'none'")
        results = [
            "found" if gold == tag else RESULT_OF.get(str(category), "confused")
            for gold, tag, category in zip(
                pairs["gold"], pairs["predicted"], pairs["category"], strict=True
            )
        ]
        for name in ("all labels", "alerts", "confirms", *SOME):
            own = [
                result
                for gold, result in zip(pairs["gold"], results, strict=True)
                if name in ("all labels", gold, f"{stage(str(gold))}s")
            ]
            for result in RESULTS:
                share = own.count(result) / len(own) if own else math.nan
                assert rows[name, result][when] == pytest.approx(share, nan_ok=True)
                assert rows[name, result]["support"] == len(own)
    gained = frame["after"] - frame["before"]
    assert frame["value"].to_list() == pytest.approx(gained.to_list(), nan_ok=True)


def test_runs_over_other_dialogues_are_refused() -> None:
    runs = [run_of([[(0, 0)] * size] * 2) for size in (1, 2)]
    with pytest.raises(ScoringError, match="corpus"):
        label_changes(*runs, draws=0)
