"""On a GPU the wave engine gives the answers of the reference engine. Skipped without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cradle_lib import paths
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import Model, Options, Prediction, Session, load_registry
from cradle_lib.detection.local.local_engine import load_local
from cradle_lib.detection.local.reference import Reference
from cradle_lib.detection.local.wave.engine import Wave
from cradle_lib.detection.selection import sample_dialogues
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


Answers = dict[tuple[str, int], tuple[list[str], int]]


def answers(model: Model, corpus: Corpus) -> tuple[Answers, Answers]:
    """First lines and labels of the reference engine and of the wave engine, by dialogue and turn.

    The reference engine writes on after the line that counts, the wave engine does not.
    """
    options = Options(device=DEVICE)
    local = load_local(model, options)
    found: list[Answers] = []
    for engine in (Reference(model, options, local), Wave(model, options, local)):
        predictions: list[Prediction] = []
        template = load_template(model.prompt)
        engine.answer_all([Session(d, template) for d in corpus.dialogues], predictions.append)
        found.append(
            {(p.dialogue, p.turn): (p.answer.strip().splitlines()[:1], p.mask) for p in predictions}
        )
    slow, fast = found
    return slow, fast


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_answered_alike(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "short.txt").write_text("Label.\n{history}\n{current_turn}\n")
    monkeypatch.setattr(paths, "PROMPTS", tmp_path)
    model = make_model(make_weights(tmp_path / "weights", family=family), "wave")
    slow, fast = answers(model, CORPUS)
    assert len(slow) == sum(len(dialogue.user_turns) for dialogue in CORPUS)
    assert len({str(answer) for answer in slow.values()}) > 1
    assert fast == slow


def test_the_embedded_model_is_answered_alike() -> None:
    corpus = load_corpus("surrogate")
    slow, fast = answers(
        load_registry()["smollm2-135m"], corpus.subset(sample_dialogues(corpus, 8), "sample")
    )
    assert fast == slow
