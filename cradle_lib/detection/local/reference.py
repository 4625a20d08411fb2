"""The reference engine: one dialogue and one turn at a time, as the paper ran its models.

Decoding is Transformers' ``generate``: greedy, as in the paper (Appendix C.1), or sampled where the
entry sets a temperature. The answers of the wave engine are compared with those of this one.
"""

from __future__ import annotations

from cradle_lib.detection.engine import Sequential
from cradle_lib.detection.local.generation import sampling_seed
from cradle_lib.detection.local.local_engine import LocalEngine
from cradle_lib.detection.session import Answer, Prompt
from cradle_lib.errors import EngineError


class Reference(LocalEngine, Sequential):
    """Asks one question at a time; see :class:`.LocalEngine` for its arguments."""

    uses = frozenset(
        {
            "max_new_tokens",
            "temperature",
            "seed",
            "none_bias",
            "dtype",
            "chat",
            "date",
            "answer_after",
            "from_checkpoint",
        }
    )

    def reply(self, prompt: Prompt) -> Answer:
        """Generates one answer, the whole prompt computed from scratch.

        It is ``failed`` if prompt and answer may be longer than the model's context.

        Raises:
            EngineError: If the weights can't be loaded or memory runs out.
        """
        import torch

        local = self._local
        ids = local.encode(prompt)
        length, longest = int(ids.shape[1]), local.decoding.max_new_tokens
        if (failed := local.too_long(length, longest, "max_new_tokens")) is not None:
            return failed
        try:
            generated = local.generate(ids, seed=sampling_seed(local.decoding.seed, prompt))
        except torch.OutOfMemoryError as error:
            raise EngineError(
                f"{self._model.name}: memory ran out at a prompt of {length} tokens. "
                "The answers so far are kept; go on with another --set device=NAME, or with "
                "--set device_map=auto."
            ) from error
        ended = len(generated) < longest or generated[-1] in local.ends
        return local.answer(generated, ended=ended, tokens_in=length, tokens_cached=0)
