"""The comparison of two engines on a device, which users with a GPU run before a long run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import Outcome, Prediction, load_registry
from cradle_lib.detection.local.wave.self_test import compare, compare_engines
from cradle_lib.errors import EngineError

from ..dialogues import make_corpus
from .tiny_models import make_model, make_weights

CORPUS = make_corpus(
    [[("User", f"turn {i} {row}", "none") for row in range(2 + i)] for i in range(3)]
)


@pytest.fixture(autouse=True)
def _short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "short.txt").write_text("Label.\n{history}\n{current_turn}\n")
    monkeypatch.setattr(paths, "PROMPTS", tmp_path)


def test_the_engines_agree_on_this_processor_and_the_report_says_what_was_asked(
    tmp_path: Path,
) -> None:
    model = make_model(make_weights(tmp_path / "weights"), "wave")
    found = compare_engines(model, CORPUS, "cpu")
    assert found.passed
    assert (found.dialogues, found.turns, found.same_answers) == (3, 9, 9)
    assert found.first_difference is None
    assert found.report["versions"]["torch"] == torch.__version__
    # No time: one dialogue, whichever, and no more.
    assert compare_engines(model, CORPUS, "cpu", seconds=0.0).dialogues == 1


def prediction(turn: int, answer: str = "none", mask: int = 0) -> Prediction:
    return Prediction("d0001", turn, f"k{turn}", answer, mask, Outcome.OK)


def test_differences_are_counted_and_the_first_is_named() -> None:
    slow = [prediction(turn) for turn in range(4)]
    fast = [prediction(3), prediction(2, "None."), prediction(0)]
    assert compare(slow, fast) == {
        "turns": 4,
        # Turn 1 has no answer; turn 2 another text with the same labels.
        "same_answers": 2,
        "same_tags": 3,
        "first_difference": "d0001, turn 1",
    }


def test_in_float32_every_answer_must_agree_and_in_less_nearly_every_tag(tmp_path: Path) -> None:
    found = compare_engines(make_model(make_weights(tmp_path / "w"), "wave"), CORPUS, "cpu")
    assert not replace(found, same_answers=8).passed
    assert replace(found, same_answers=8, dtype="bfloat16").passed
    assert not replace(found, same_tags=8, dtype="bfloat16").passed


def test_what_can_not_be_tested_is_said(tmp_path: Path) -> None:
    model = make_model(make_weights(tmp_path / "w"), "wave")
    if not torch.cuda.is_available():
        with pytest.raises(EngineError, match=r"no device 'cuda' here\. PyTorch sees: cpu"):
            compare_engines(model, CORPUS, "cuda")
    with pytest.raises(EngineError, match="no device 'tpu'"):
        compare_engines(model, CORPUS, "tpu")
    with pytest.raises(EngineError, match="is not computed on this machine"):
        compare_engines(load_registry()["keyword"], CORPUS, "cpu")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_the_wave_engine_agrees_with_the_reference_on_the_gpu() -> None:
    found = compare_engines(load_registry()["smollm2-135m"], load_corpus("surrogate"), "cuda")
    assert found.passed, found.report
