from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from cradle_lib.corpus.needs import Need, unmet
from cradle_lib.scoring.analyses.alarm_burden import alarm_burden
from cradle_lib.scoring.analyses.timing import timing
from cradle_lib.scoring.compare import compare
from cradle_lib.scoring.evaluate import evaluate

from .made_runs import AO, SHO, make_corpus, run_of

META = {"timing", "scenario"}
ALL = set(get_args(Need)) - META


@pytest.mark.parametrize(
    ("dialogues", "lacking"),
    [
        ([[("U", AO), ("U", 0), ("U", SHO)]], set()),
        ([[("U", AO), ("U", 0)]], {"confirms"}),
        ([[("U", SHO), ("U", 0)]], {"alerts"}),
        ([[("U", AO | SHO)], [("U", SHO)]], {"unlabelled turns"}),
        # Labels on Listener and continuation rows do not count.
        (
            [[("L", AO), ("U", 0), ("+", SHO)]],
            ALL - {"user turns", "gold or none", "unlabelled turns"},
        ),
        ([[("L", AO)]], ALL),
        ([], ALL),
    ],
)
def test_unmet_needs_of_a_corpus(dialogues: list[Any], lacking: set[Need]) -> None:
    corpus = make_corpus(dialogues)
    reasons = {need: unmet(corpus, need) for need in get_args(Need)}
    # These corpora have no timing and scenario.
    assert {need for need, why in reasons.items() if why is not None} == lacking | META
    assert all("tiny" in why and not why.endswith(".") for why in reasons.values() if why)


def test_a_single_dialogue_has_no_interval() -> None:
    runs = [run_of([[(AO, AO), (0, tag), (SHO, 0)]]) for tag in (AO, 0)]
    scored = evaluate(runs[0], draws=20)
    # One of three turns is right: the first.
    assert scored.estimate("exact_match").value == pytest.approx(1 / 3)
    assert np.isnan(scored.estimate("exact_match")[1:]).all()
    assert "no intervals" in scored.signature.long()
    assert timing(runs[0], draws=20)["low"].isna().all()
    alarms = alarm_burden(runs[0], draws=20).set_index("measure")
    assert alarms.loc["flagged_per_100", "value"] == 100
    assert alarms[["low", "high"]].isna().all(axis=None)
    compared = compare(runs, names=("a", "b"), permutations=10)
    assert compared.to_frame()[["low", "high"]].isna().all(axis=None)
    assert "the detectable difference is unknown" in compared.power_note
    # Both dialogues match exactly, so that all draws are equal.
    found = evaluate(run_of([[(AO, AO)], [(0, 0)]]), draws=20).estimate("exact_match")
    assert tuple(found) == pytest.approx((1, np.nan, np.nan), nan_ok=True)
