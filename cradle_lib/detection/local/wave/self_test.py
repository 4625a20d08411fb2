"""Asks the wave engine and the reference engine the same questions on one device, and compares.

What is measured on processors says little of a GPU, whose kernels are others. This is the test that
a user with a GPU makes before a long run, in about two minutes, and can report.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any, Final

from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection.engine import Options
from cradle_lib.detection.local.reference import Reference
from cradle_lib.detection.local.wave.engine import Wave
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.selection import sample_dialogues
from cradle_lib.detection.session import Prediction, Session
from cradle_lib.errors import EngineError
from cradle_lib.prompts import load_template

#: Seconds that the reference engine is given; the wave engine needs less for the same questions.
SECONDS: Final = 75.0
_MOST: Final = 40


@dataclass(frozen=True, slots=True)
class SelfTest:
    """What the comparison found.

    Attributes:
        device: Name of the device.
        model: Id of the model.
        dtype: Number format of the weights.
        dialogues: Dialogues that both were asked about.
        turns: Their questions.
        same_answers: Questions to which both wrote the same text.
        same_tags: Questions for which both texts say the same labels.
        first_difference: Dialogue and turn of the first difference; after it the histories of a
            dialogue differ, and so may all its later answers.
        reference_seconds: Time of the reference engine, without loading.
        wave_seconds: Time of the wave engine, without loading.
        peak_bytes: Most memory of the device at a time; ``None`` where it can't be asked.
        versions: Of what computed.
    """

    device: str
    model: str
    dtype: str
    dialogues: int
    turns: int
    same_answers: int
    same_tags: int
    first_difference: str | None
    reference_seconds: float
    wave_seconds: float
    peak_bytes: int | None
    versions: dict[str, str]

    @property
    def passed(self) -> bool:
        """Whether the engines agree: in float32 in every answer, else in 19 of 20 tags."""
        if self.dtype == "float32":
            return self.same_answers == self.turns
        return self.same_tags >= 0.95 * self.turns

    @property
    def report(self) -> dict[str, Any]:
        """What to report, ready for JSON."""
        return asdict(self) | {"passed": self.passed}


def compare_engines(
    model: Model, corpus: Corpus, device: str, *, seconds: float = SECONDS
) -> SelfTest:
    """Asks both engines about the same dialogues, as many as the reference engine has time for.

    After so many seconds it begins no further dialogue. Whatever engine the model has does not
    matter; the dialogues are drawn from the corpus.

    Raises:
        EngineError: If there is no such device, or the model can't be loaded there.
    """
    if not model.computes_here:
        raise EngineError(f"{model.id} is not computed on this machine. Name local weights.")
    options = Options(device=device)
    wave, template = Wave(model, options), load_template(model.prompt)
    import torch

    # Loaded once, and before the clock runs.
    local = wave._local
    reference = Reference(model, options, local)
    asked: list[Dialogue] = []
    slow: list[Prediction] = []
    began = time.perf_counter()
    for place in sample_dialogues(corpus, _MOST):
        asked.append(corpus.dialogues[place])
        reference.answer_all([Session(asked[-1], template)], slow.append)
        if time.perf_counter() - began > seconds:
            break
    between = time.perf_counter()
    fast: list[Prediction] = []
    wave.answer_all([Session(dialogue, template) for dialogue in asked], fast.append)
    ended = time.perf_counter()
    on_gpu = device.startswith("cuda")
    return SelfTest(
        device=torch.cuda.get_device_name(device) if on_gpu else platform.machine(),
        model=model.id,
        dtype=str(local.lm.dtype).removeprefix("torch."),
        dialogues=len(asked),
        **compare(slow, fast),
        reference_seconds=round(between - began, 2),
        wave_seconds=round(ended - between, 2),
        peak_bytes=torch.cuda.max_memory_allocated(device) if on_gpu else None,
        versions={
            # With its build, such as +cpu, which the package's version may lack.
            "torch": str(torch.__version__),
            "transformers": version("transformers"),
            "cuda": str(torch.version.cuda),
        },
    )


def compare(slow: Sequence[Prediction], fast: Sequence[Prediction]) -> dict[str, Any]:
    """Compares answers, question by question: the fields of :class:`SelfTest` about them.

    Those of the reference engine are in the order of the dialogues. A question that only one of
    them answered counts as a difference.
    """
    other = {(p.dialogue, p.turn): p for p in fast}
    pairs = [(p, other.get((p.dialogue, p.turn))) for p in slow]
    answered = [(one, two) for one, two in pairs if two is not None]
    differing = [one for one, two in pairs if two is None or one.answer != two.answer]
    return {
        "turns": len(slow),
        "same_answers": len(slow) - len(differing),
        "same_tags": sum((a.outcome, a.mask) == (b.outcome, b.mask) for a, b in answered),
        "first_difference": next((f"{p.dialogue}, turn {p.turn}" for p in differing), None),
    }
