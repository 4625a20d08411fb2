"""The reference engine: one dialogue and one turn at a time, as the paper ran its models.

Decoding is Transformers' ``generate``: greedy, as in the paper (Appendix C.1), or sampled where the
entry sets a temperature. The answers of the wave engine are compared with those of this one.
"""

from __future__ import annotations

from cradle_engines.local.generation import sampling_seed
from cradle_engines.local.local_engine import LocalEngine
from cradle_lib.detection.models.engine import Sequential
from cradle_lib.detection.protocol.session import Answer, Prompt


class Reference(LocalEngine, Sequential):
    """Asks one question at a time; see :class:`.LocalEngine` for its arguments."""

    uses = frozenset({
        "max_new_tokens", "temperature", "seed", "none_bias", "dtype", "chat", "date",
        "answer_after", "from_checkpoint",
    })  # fmt: skip

    def prepare(self) -> None:
        """Loads the weights."""
        _ = self._local

    def reply(self, prompt: Prompt) -> Answer:
        """Generates one answer, without a cache of earlier prompts.

        It is ``failed`` if prompt and answer may be longer than the model's context.

        Raises:
            EngineError: If the weights can't be loaded.
        """
        local = self._local
        [ids] = local.ids([prompt])
        longest = local.decoding.max_new_tokens
        if (failed := local.too_long(len(ids), longest)) is not None:
            return failed
        generated = local.generate(ids, seed=sampling_seed(local.decoding.seed, prompt))
        ended = len(generated) < longest or generated[-1] in local.ends
        return local.answer(generated, ended=ended, tokens_in=len(ids), tokens_cached=0)
