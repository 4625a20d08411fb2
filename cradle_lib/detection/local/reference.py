"""The reference engine: one dialogue and one turn at a time, as the paper ran its models.

Decoding with Transformers' ``generate`` and nothing clever: greedy, as in the paper (Appendix
C.1), or sampled where the entry sets a temperature.
Other engines for local weights are measured against the tags that this one gives.
"""

from __future__ import annotations

import hashlib
from functools import cached_property

from cradle_lib.corpus import Corpus
from cradle_lib.detection.engine import Options, Sequential
from cradle_lib.detection.local.loading import Local, load_local, require_packages, wait_passively
from cradle_lib.detection.local.snapshot import weights_pin
from cradle_lib.detection.model import Model
from cradle_lib.detection.parsing import Outcome
from cradle_lib.detection.session import Answer, Prompt
from cradle_lib.errors import EngineError


class Reference(Sequential):
    """Runs any causal language model of Transformers.

    Weights are loaded when the first question comes, so that a finished run needs none.

    Args:
        model: An entry of the registry.
        options: Device and device map.
        local: The model, if it has been loaded already.

    Raises:
        EngineError: If PyTorch or Transformers is not installed.
    """

    kind = "local"
    uses = frozenset({"max_new_tokens", "temperature", "seed", "dtype", "chat", "answer_after"})
    needs_weights = True

    @classmethod
    def create(cls, model: Model, corpus: Corpus, options: Options) -> Reference:
        """Makes the engine, for the weights as they are now."""
        engine = cls(model, options)
        engine.revision = weights_pin(model)
        return engine

    def __init__(self, model: Model, options: Options, local: Local | None = None) -> None:
        require_packages("torch", "transformers", extra="local", model=model)
        wait_passively()
        self._model, self._options, self._loaded = model, options, local

    @cached_property
    def _local(self) -> Local:
        return self._loaded or load_local(self._model, self._options)

    def reply(self, prompt: Prompt) -> Answer:
        """Generates one answer, the whole prompt computed from scratch.

        Returns:
            The answer; ``failed`` if the prompt alone is longer than the model's context.

        Raises:
            EngineError: If the weights can't be loaded or memory runs out.
        """
        import torch

        local = self._local
        ids = local.encode(prompt)
        length = int(ids.shape[1])
        if local.context is not None and length >= local.context:
            reason = f"the prompt has {length} tokens, the model's context {local.context}"
            return Answer("", Outcome.FAILED, reason, tokens_in=length)
        try:
            generated = local.generate(ids, seed=self._seed(prompt))
        except torch.OutOfMemoryError as error:
            raise EngineError(
                f"{self._model.name}: memory ran out at a prompt of {length} tokens. "
                "The answers so far are kept; go on with another --device or --device-map auto."
            ) from error
        ended = len(generated) < local.decoding.max_new_tokens or generated[-1] in local.ends
        return local.answer(generated, ended=ended, tokens_in=length, tokens_cached=0)

    def _seed(self, prompt: Prompt) -> int:
        """Seeds the sampling of one answer, so that a run that is resumed draws the same one."""
        own = self._local.decoding.seed or 0
        return int(hashlib.sha256(f"{own} {prompt.key}".encode()).hexdigest()[:15], 16)
