"""Compares the wave and reference engines of one model: tokens, speed and memory.

The history shows the gold labels, so that both engines get the same prompts. An answer of the wave
engine must be the beginning of that of the reference engine, which continues after the labels. At a
token where rounding decides, the two may differ.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from cradle_engines.local.local_engine import Local, load_local, shared_length
from cradle_engines.local.own_forward import own_logits, tolerance
from cradle_engines.local.reference import Reference
from cradle_engines.local.wave.engine import Wave
from cradle_lib.corpus import Dialogue
from cradle_lib.detection import Engine, Model, Options, Outcome, Prediction, Session
from cradle_lib.detection.protocol.session import Answer, Prompt
from cradle_lib.prompts import load_template

Place = tuple[str, int]
#: The first two lines of a table in Markdown.
HEADER = """\
| model | dtype | same answers | ties | wrong | wave turns/s | generate turns/s | ratio | peak GB |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |"""
#: The tokens of answers by dialogue and turn; ``None`` for a failed one.
Tokens = dict[Place, list[int] | None]


@dataclass(frozen=True)
class Comparison:
    """The result, with speeds in turns per second.

    Attributes:
        dtype: Number format of the weights.
        same: Share of the answers that are equal as far as the wave engine's goes.
        ties: Share of those whose first different tokens are equally likely within the rounding of
            the model's own forward pass.
        wrong: Share of those that differ otherwise, or failed.
        wave: Speed of the wave engine.
        generate: Speed of the reference engine: plain ``generate``.
        peak: Peak memory of the wave engine in GB: of the GPU, or of this process.
        fallback: Why the wave engine can't run the model.
    """

    dtype: str
    same: float
    ties: float
    wrong: float
    wave: float
    generate: float
    peak: float
    fallback: str | None

    @property
    def passed(self) -> bool:
        """Whether the wave engine ran the model, and no answer is wrong."""
        return not self.wrong and self.fallback is None

    def row(self, name: str) -> str:
        """Writes a row of the table that :data:`HEADER` begins."""
        shares = (f"{share:.1%}" for share in (self.same, self.ties, self.wrong))
        speeds = (f"{number:.1f}" for number in (self.wave, self.generate))
        ratio, peak = f"{self.wave / self.generate:.1f}", f"{self.peak:.1f}"
        name = f"{name} ({self.fallback})" if self.fallback else name
        return " | ".join(["", name, self.dtype, *shares, *speeds, ratio, peak, ""]).strip()


@dataclass(frozen=True)
class _Recorded(Local):
    """A loaded model that keeps the tokens of the latest answer."""

    written: list[int] = field(default_factory=list)

    def answer(self, ids: list[int], **more: Any) -> Answer:
        self.written[:] = ids
        return super().answer(ids, **more)


def compare(
    model: Model, device: str, many: Sequence[Dialogue], few: Sequence[Dialogue]
) -> Comparison:
    """Asks the wave engine about ``many`` dialogues, the reference engine about ``few`` of them."""
    options = Options(device=device)
    one = load_local(model, options)
    local = _Recorded(one.name, one.lm, one.tokenizer, one.decoding, one.shipped)
    engine = Wave(model, options, local)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    found, fast = _tokens(engine, local, _sessions(model, many))
    if device == "cuda":
        peak = torch.cuda.max_memory_allocated() / 1e9
    else:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    expected, slow = _tokens(Reference(model, options, local), local, _sessions(model, few))
    prompts = _prompts(_sessions(model, few))
    verdicts = [
        _verdict(local, prompts[place], found[place], tokens) for place, tokens in expected.items()
    ]
    same, ties, wrong = (verdicts.count(each) / len(verdicts) for each in ("same", "tie", "wrong"))
    dtype = str(local.lm.dtype).removeprefix("torch.")
    return Comparison(dtype, same, ties, wrong, fast, slow, peak, engine.fallback)


def _sessions(model: Model, dialogues: Sequence[Dialogue]) -> list[Session]:
    template = load_template(model.prompt)
    return [Session(dialogue, template, "gold") for dialogue in dialogues]


def _prompts(sessions: Sequence[Session]) -> dict[Place, Prompt]:
    found = {}
    for session in sessions:
        while (prompt := session.prompt) is not None:
            found[prompt.dialogue, prompt.turn] = prompt
            session.answer(Answer("none"))
    return found


def _tokens(engine: Engine, local: _Recorded, sessions: Sequence[Session]) -> tuple[Tokens, float]:
    """Asks all questions; gives the tokens of the answers, and the number of turns per second."""
    found: Tokens = {}

    def emit(prediction: Prediction) -> None:
        failed = prediction.outcome is Outcome.FAILED
        found[prediction.dialogue, prediction.turn] = None if failed else list(local.written)

    begin = time.perf_counter()
    engine.answer_all(sessions, emit)
    return found, len(found) / (time.perf_counter() - begin)


def _verdict(
    local: Local, prompt: Prompt, found: list[int] | None, expected: list[int] | None
) -> str:
    """Says whether answers are the ``same``, differ by a ``tie``, or are ``wrong``."""
    if found is None or expected is None:
        return "wrong"
    common = shared_length(found, expected)
    if common == len(found):
        return "same"
    if common == len(expected):
        return "wrong"
    [ids] = local.ids([prompt])
    logits = own_logits(local.lm, [*ids, *found[:common]])[-1]
    gap = (logits[found[common]] - logits[expected[common]]).abs() / logits.std()
    return "tie" if bool(gap <= tolerance(local.lm)) else "wrong"
