"""A large model's costs from a small journal, against sums by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Journal, Outcome, Prediction
from cradle_lib.detection.cost.large_model import large_model_assumptions, large_model_costs
from cradle_lib.record import Record


def test_what_is_calculated_rests_on_a_journal(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    monkeypatch.setattr(paths, "SHIPPED_RUNS", tmp_path / "shipped")
    assert large_model_costs(corpus, "smollm2-135m-constrained").empty
    record = Record.create(
        model="smollm2-135m-constrained", name="M", group="embedded", engine="wave",
        prompt="turn", prompt_hash="0" * 16, decoding={}, corpus=corpus.name,
        corpus_fingerprint=corpus.fingerprint,
    )  # fmt: skip
    path = tmp_path / corpus.name / "smollm2-135m-constrained.jsonl"
    with Journal.open(path, record) as journal:
        for turn in range(4):
            sizes = (2000 + 100 * turn, 2000 + 100 * turn - 60, 5)
            journal.append(Prediction("d0001", turn, "", "none", 0, Outcome.OK, None, *sizes))
    costs = large_model_costs(corpus, "smollm2-135m-constrained")
    # One dialogue alone can't share the weights: 5 passes a turn, and as many one by one.
    assert costs.index.tolist() == ["one prompt at a time", "waves of 1"]
    # 2,000 to 2,300 tokens and 4 x 4 of answers; 60 new ones each and the prefix of 1,940 once.
    assert costs["tokens"].tolist() == [8600 + 16, 4 * 60 + 16 + 1940]
    assert costs["passes"].iloc[0] == 20
    assert {str(kind) for kind in costs.dtypes} == {"float64"}


def test_every_input_of_the_calculation_is_listed() -> None:
    frame = large_model_assumptions()
    values = dict(zip(frame["quantity"], frame["value"], strict=True))
    # config.json of Qwen3-32B, and the data sheet of an H200.
    assert (values["Layers"], values["Intermediate size"]) == (64, 25_600)
    assert values["Parameters (10^9), from these"] == pytest.approx(32.8, abs=0.05)
    assert values["Bytes of memory (10^9)"] == 141
    assert frame["about"].nunique() == 2
