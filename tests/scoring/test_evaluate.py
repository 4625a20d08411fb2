from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import multilabel_confusion_matrix

from cradle_lib.errors import ScoringError
from cradle_lib.labels import LABELS
from cradle_lib.scoring.conventions import Conventions
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.version import library_version

from .made_runs import AO, DVP, SHO, bits, make_corpus, make_predictions, noisy_run, run_of

# d0000: a hit and a miss; d0001: a label on a Listener row and a false alarm; d0002: nothing.
DIALOGUES = [
    [("U", AO), ("L", 0), ("U", SHO)],
    [("U", 0), ("L", DVP), ("U", 0)],
    [("L", 0), ("U", 0)],
]
RUN = make_predictions(make_corpus(DIALOGUES), [AO, 0, 0, SHO, 0])
NOISY = noisy_run()


def test_labels_that_are_never_gold_have_no_f1() -> None:
    found = evaluate(RUN, level="turn", draws=20, conventions=Conventions(zero_division=1.0))
    assert np.isnan(found.estimate("f1", "alert_past")).all()
    frame = found.to_frame()
    of_labels = frame[frame["label"].notna()]
    never = of_labels[~of_labels["label"].isin(["alert_ongoing", "confirm_SH_ongoing"])]
    assert never[["value", "low", "high"]].isna().all(axis=None)
    assert frame.drop(index=never.index)["value"].notna().all()
    notes = evaluate(RUN, draws=0).notes
    assert "14 of the 16 labels are never gold on the scored turns" in notes[-1]
    assert notes[1].startswith("1 gold label is not on user turns")
    counted = evaluate(RUN, draws=0, conventions=Conventions(orphans="count")).notes
    assert "13 of the 16 labels" in counted[1]


def test_the_signature_names_the_settings() -> None:
    chosen = Conventions(0.5, 1.0, "count", "exclude", "harmonic")
    found = evaluate(RUN, level="confirm", conventions=chosen, draws=20, seed=9).signature
    assert str(found) == (
        "cradle|lvl:confirm|labels:14|hist:self|dec:free|empty:0.5|zd:1|orphans:count"
        f"|unparsed:exclude|macro:harmonic|corpus:{RUN.corpus.fingerprint}|n:3|boot:20@9"
        f"|v{library_version()}"
    )


def test_outcomes_are_counted_beside_the_scores() -> None:
    run = run_of([[(0, 0), (0, 0), (0, 0), (SHO, SHO)]], "ouro")
    result = evaluate(run, draws=0)
    assert result.run.outcome_counts == {"ok": 2, "unparsed": 1, "refused": 1, "failed": 0}
    assert result.run.cleaned == 0
    assert result.estimate("exact_match").value == 2 / 4
    assert np.isnan(result.estimate("exact_match")[1:]).all()
    wrote = ("none.", "none.\n", "none", "**confirm_SH_ongoing**")
    assert replace(run, answers=wrote).cleaned == 2


def test_an_empty_run_and_negative_draws_are_refused() -> None:
    with pytest.raises(ScoringError, match="nothing to score in tiny: 1 user turns"):
        evaluate(run_of([[(SHO, 0)]], "f"), conventions=Conventions(unparsed="exclude"))
    with pytest.raises(ScoringError, match="-1 draws"):
        evaluate(RUN, draws=-1)


def test_a_frame_has_the_counts_of_scikit_learn_and_intervals_that_contain_the_scores() -> None:
    frame = evaluate(NOISY, draws=50).to_frame()
    assert (frame["low"] <= frame["value"]).all()
    assert (frame["value"] <= frame["high"]).all()
    assert set(frame["unusable"]) == {int((~NOISY.ok).sum())}
    f1 = frame[frame["score"] == "f1"]
    assert [*f1["label"]] == [*LABELS]
    counts = multilabel_confusion_matrix(bits(NOISY.corpus.gold), bits(NOISY.masks))
    found = f1[["tp", "fn", "fp"]].to_numpy().tolist()
    assert found == [[tp, fn, fp] for (_, fp), (fn, tp) in counts.tolist()]
    assert (f1["support"] == f1["tp"] + f1["fn"]).all()
    assert set(frame["tags"]) == {int(bits(NOISY.masks).sum())}
