"""What the engines for weights on this machine share: when and how these are loaded."""

from __future__ import annotations

from functools import cached_property
from typing import Self

from cradle_lib.corpus import Corpus
from cradle_lib.detection.engine import Engine, Options
from cradle_lib.detection.local.loading import Local, load_local, require_packages, wait_passively
from cradle_lib.detection.local.snapshot import weights_pin
from cradle_lib.detection.models.model import Model


class LocalEngine(Engine):
    """Runs a causal language model of Transformers.

    Weights are loaded when the first question comes, so that a finished run needs none.

    Args:
        model: An entry of the registry.
        options: How this machine runs it.
        local: The model, if it has been loaded already.

    Raises:
        EngineError: If PyTorch or Transformers is not installed.
    """

    kind = "local"
    needs_weights = True

    @classmethod
    def create(cls, model: Model, corpus: Corpus, options: Options) -> Self:
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
