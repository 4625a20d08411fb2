from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import (
    f1_score,
    jaccard_score,
    multilabel_confusion_matrix,
    precision_score,
    recall_score,
)

from cradle_lib.errors import ScoringError
from cradle_lib.labels import LABELS
from cradle_lib.scoring.conventions import LEVELS, Conventions, Level
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.signature import Signature
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


def test_a_frame_has_no_f1_of_what_is_never_gold() -> None:
    frame = evaluate(RUN, level="turn", draws=20).to_frame()
    of_labels = frame[frame["label"].notna()]
    never = of_labels[~of_labels["label"].isin(["alert_ongoing", "confirm_SH_ongoing"])]
    assert never[["value", "low", "high"]].isna().all(axis=None)
    assert frame.drop(index=never.index)["value"].notna().all()
    assert "14 of the 16 labels are never gold here" in evaluate(RUN, draws=0).notes[-1]


def test_without_gold_only_scores_of_whole_units_mean_something() -> None:
    result = evaluate(run_of([[(0, 0), (AO, AO)], [(0, SHO)]]), level="confirm", draws=0)
    frame = result.to_frame().set_index("score")
    # Confirms: both dialogues have none in gold, and one of them has one predicted.
    assert frame["value"].dropna().to_dict() == {"exact_match": 0.5, "jaccard": 0.5}
    assert "No user turn of tiny has a gold confirm: precision" in result.notes[-1]


@pytest.mark.parametrize("level", LEVELS)
def test_the_signature_names_the_settings(level: Level) -> None:
    choices = {
        "empty_jaccard": 0.5,
        "zero_division": 1.0,
        "orphans": "count",
        "unparsed": "exclude",
        "macro_f1": "harmonic",
    }
    chosen = Conventions(**choices)  # type: ignore[arg-type]
    assert evaluate(RUN, level=level, conventions=chosen, draws=20, seed=9).signature == Signature(
        level=level,
        labels=14 if level == "confirm" else 16,
        history="self",
        decoding="free",
        corpus=RUN.corpus.fingerprint,
        dialogues=3,
        draws=20,
        seed=9,
        version=library_version(),
        **choices,  # type: ignore[arg-type]
    )


def test_outcomes_are_counted_beside_the_scores() -> None:
    run = run_of([[(0, 0), (0, 0), (0, 0), (SHO, SHO)]], "ouro")
    result = evaluate(run, draws=0)
    assert result.outcomes == {"ok": 2, "unparsed": 1, "refused": 1, "failed": 0}
    assert result.cleaned == 0
    assert result.estimate("exact_match").value == 2 / 4
    assert np.isnan(result.estimate("exact_match")[1:]).all()
    wrote = ("none.", "none.\n", "none", "**confirm_SH_ongoing**")
    assert evaluate(replace(run, answers=wrote), draws=0).cleaned == 2


def test_what_can_not_be_scored_is_refused() -> None:
    with pytest.raises(ScoringError, match="nothing to score in tiny: 1 user turns"):
        evaluate(run_of([[(SHO, 0)]], "f"), conventions=Conventions(unparsed="exclude"))
    with pytest.raises(ScoringError, match="-1 draws"):
        evaluate(RUN, draws=-1)


def test_scores_are_those_of_scikit_learn() -> None:
    gold, predicted, readable = bits(NOISY.corpus.gold), bits(NOISY.masks), NOISY.ok
    # Two empty sets have Jaccard 1, but an answer that can't be read earns nothing for it.
    earned = readable | gold.any(axis=1)
    pairs = list(zip(gold, predicted, strict=True))
    jaccard = [
        jaccard_score(g[None], t[None], average="samples", zero_division=1) for g, t in pairs
    ]
    expected = {
        "exact_match": np.mean([(g == t).all() for g, t in pairs] * earned),
        "jaccard": np.mean(jaccard * earned),
    }
    for average in ("micro", "macro"):
        for score in (precision_score, recall_score, f1_score):
            name = f"{average}_{score.__name__.removesuffix('_score')}"
            expected[name] = score(gold, predicted, average=average, zero_division=0)
    frame = evaluate(NOISY, draws=50).to_frame()
    overall = frame[frame["label"].isna()].set_index("score")
    assert overall["value"].to_dict() == pytest.approx(expected)
    assert (overall["low"] <= overall["value"]).all()
    assert (overall["value"] <= overall["high"]).all()
    assert set(overall["unusable"]) == {int((~readable).sum())}
    f1 = frame[frame["label"].notna() & (frame["score"] == "f1")]
    assert [*f1["label"]] == [*LABELS]
    assert [*f1["value"]] == pytest.approx(f1_score(gold, predicted, average=None, zero_division=0))
    assert [*f1["support"]] == gold.sum(axis=0).tolist()
    matrices = multilabel_confusion_matrix(gold, predicted)
    for row, [[_, fp], [fn, tp]] in zip(f1.itertuples(), matrices, strict=True):
        assert (row.tp, row.fp, row.fn) == (tp, fp, fn)
