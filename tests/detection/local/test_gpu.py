"""On a GPU the wave engine gives the answers of the reference engine. Skipped without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cradle_lib import paths
from cradle_lib.detection import Options, Prediction, Session
from cradle_lib.detection.local.local_engine import load_local
from cradle_lib.detection.local.reference import Reference
from cradle_lib.detection.local.wave.engine import Wave
from cradle_lib.detection.parsing import first_line
from cradle_lib.prompts import load_template

from ..dialogues import make_corpus
from .tiny_models import FAMILIES, make_model, make_weights

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU here"),
]
DEVICE = "cuda"
CORPUS = make_corpus(
    [[("User", f"turn {i} {row}", "none") for row in range(2 + i)] for i in range(6)]
)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_answered_alike(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference engine writes on after the line that counts, the wave engine does not."""
    (tmp_path / "short.txt").write_text("Label.\n{history}\n{current_turn}\n")
    monkeypatch.setattr(paths, "PROMPTS", tmp_path)
    model = make_model(make_weights(tmp_path / "weights", family=family), "wave")
    options, template = Options(device=DEVICE), load_template("short")
    local = load_local(model, options)
    found = []
    for engine in (Reference(model, options, local), Wave(model, options, local)):
        predictions: list[Prediction] = []
        engine.answer_all([Session(d, template) for d in CORPUS.dialogues], predictions.append)
        found.append({(p.dialogue, p.turn): (first_line(p.answer), p.mask) for p in predictions})
    assert len({str(answer) for answer in found[0].values()}) > 1
    assert found[0] == found[1]
