from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.scoring.errors.consequence import STATES, consequence, states

from ..timing.test_windows import AO, DVP, SHO, dialogues, rows_of


@settings(deadline=None, max_examples=100)
@given(dialogues)
def test_the_state_of_a_turn_is_what_went_wrong_before_it(
    turns: list[list[tuple[int, int]]],
) -> None:
    rows = rows_of(turns)
    expected = []
    for d in turns:
        extra = lacking = False
        for gold, own in d:
            expected.append(STATES[extra + 2 * lacking])
            extra |= bool(own & ~gold)
            lacking |= bool(gold & ~own)
    found = states(rows.gold, rows.predicted, rows.dialogue_of, len(turns))
    assert [STATES[i] for i in found] == expected


@pytest.fixture
def corpus(make_corpus: Callable[..., Corpus]) -> Corpus:
    return make_corpus([[("U", AO), ("U", 0), ("U", SHO)], [("U", 0), ("U", DVP)]])


def under(run: Predictions, history: str) -> Predictions:
    return replace(run, record=run.record.model_copy(update={"history": history}))


def test_a_worked_consequence(corpus: Corpus, make_predictions: Callable[..., Predictions]) -> None:
    own = make_predictions(corpus, [AO, SHO, 0, 0, DVP])
    told = under(make_predictions(corpus, [AO, SHO, SHO, 0, 0]), "gold")
    frame = consequence({"self": own, "gold": told}, draws=100)
    # An extra tag on the second turn stands in the history of the third turn only.
    assert set(frame[["value", "low", "high"]].dtypes) == {np.dtype(float)}
    assert frame.loc[frame["state"].isin(["right", "extra"]), "turns"].tolist() == [4] * 3 + [1] * 3
    cells = frame.set_index(["state", "measure", "history"])["value"]
    # Of the four turns with a right history, self has one wrong, gold that one and the last.
    assert dict(cells["right"]) == pytest.approx(
        {("wrong", "self"): 1 / 4, ("wrong", "gold"): 2 / 4, ("change", "gold"): -1 / 4}
    )
    assert dict(cells["extra"]) == pytest.approx(
        {("wrong", "self"): 1, ("wrong", "gold"): 0, ("change", "gold"): 1}
    )
    assert cells["lacking"].isna().all()
    assert cells["both"].isna().all()
    assert "|hist:gold+self|" in frame.attrs["signature"]


def test_an_unusable_answer_is_wrong_also_where_nothing_was_gold(
    corpus: Corpus, make_predictions: Callable[..., Predictions]
) -> None:
    own = make_predictions(corpus, [AO, 0, SHO, 0, DVP], outcomes="ouooo")
    told = under(make_predictions(corpus, [AO, 0, SHO, 0, DVP]), "none")
    found = consequence({"none": told, "self": own}, draws=0)
    right = found[(found["state"] == "right") & (found["measure"] == "wrong")]
    assert right["history"].tolist() == ["self", "none"]
    assert right["value"].tolist() == pytest.approx([1 / 5, 0])


def test_runs_must_be_of_one_model_and_filed_under_their_own_history(
    corpus: Corpus, make_predictions: Callable[..., Predictions]
) -> None:
    own = make_predictions(corpus, [0] * 5)
    with pytest.raises(ScoringError, match="needs `self` and at least one"):
        consequence({"self": own})
    with pytest.raises(ScoringError, match="given as 'gold'"):
        consequence({"self": own, "gold": own})
    other = under(own, "gold")
    other = replace(other, record=other.record.model_copy(update={"model": "x"}))
    with pytest.raises(ScoringError, match="one model"):
        consequence({"self": own, "gold": other})
