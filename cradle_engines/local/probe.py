"""The probe: a linear classifier on the hidden states of a frozen language model.

It measures how well the model's states encode the labels before any fine-tuning. The model reads
the usual prompts, with the labels predicted so far in the history. One logistic regression per
label classifies the state of one inner layer at the last token, where an answer would begin. The
regressions are trained on dialogues of the train split with gold labels in the history, as in
fine-tuning.

References:
    Alain and Bengio, "Understanding intermediate layers using linear classifier probes"
    (arXiv 1610.01644).
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from cradle_engines.local.local_engine import LocalEngine, shared_length
from cradle_engines.local.revision import weights_pin
from cradle_lib.corpus import Corpus
from cradle_lib.detection.baselines.tfidf import Linear, fit_labels, train_split
from cradle_lib.detection.models.engine import Options, Sequential
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.protocol.session import Answer, Prompt, gold_questions
from cradle_lib.errors import EngineError
from cradle_lib.prompts import load_template

if TYPE_CHECKING:
    from torch import Tensor

# Two thirds of the way up, where states encode meaning best; not tuned.
_DEPTH: Final = 2 / 3
# More dialogues take longer and improve little: a state has only some hundred numbers.
_DIALOGUES: Final = 500
_SEED: Final = 0


class Probe(LocalEngine, Sequential):
    """Classifies the states of a model; see :class:`.LocalEngine` for its other arguments.

    Args:
        model: An entry of the registry, with weights.
        corpus: The corpus of the run; the classifiers learn from its train split.
        options: Execution settings.

    Raises:
        EngineError: If the corpus has no train split, or the model can't be loaded.
    """

    uses = frozenset({"dtype", "chat"})
    # The checksum that earlier releases computed of the code: existing runs keep their identity.
    version = "f41c7e1ce1b7"

    @classmethod
    def create(cls, model: Model, corpus: Corpus, options: Options) -> Probe:
        """Makes the engine, and sets its revision to the current weights and train split."""
        engine = cls(model, corpus, options)
        engine.revision = f"{weights_pin(model)} train:{engine._train.fingerprint}"
        return engine

    @classmethod
    def pin(cls, model: Model, corpus: Corpus) -> str:
        """Finds the pin of the weights and of the train split, which may be missing here."""
        train = "*"
        with suppress(EngineError):
            train = train_split(corpus).fingerprint
        return f"{super().pin(model, corpus)} train:{train}"

    def __init__(self, model: Model, corpus: Corpus, options: Options) -> None:
        super().__init__(model, options)
        self._train = train_split(corpus)
        self._read: list[int] = []
        self._cache: Any = None

    def prepare(self) -> None:
        """Loads the weights and trains the classifier."""
        _ = self._fitted

    def reply(self, prompt: Prompt) -> Answer:
        """Classifies the current turn by the model's state at the end of the prompt."""
        mean, spread, linear = self._fitted
        [ids] = self._local.ids([prompt])
        if (failed := self._local.too_long(len(ids), 1)) is not None:
            return failed
        state, cached = self._state(ids)
        [text] = linear.predict(((state - mean) / spread)[None])
        return Answer(text, tokens_in=len(ids), tokens_cached=cached)

    @cached_property
    def _fitted(self) -> tuple[NDArray[np.float64], NDArray[np.float64], Linear]:
        template = load_template(self._model.prompt)
        if not self._crops:
            self._options.notice(
                f"{self._model.name}: its cache can't be reused for another prompt; the probe "
                "computes each prompt as a whole"
            )
        order = np.random.default_rng(_SEED).permutation(len(self._train))[:_DIALOGUES]
        states, masks = [], []
        for index in order:
            for prompt, mask in gold_questions(self._train.dialogues[index], template):
                [ids] = self._local.ids([prompt])
                # Prompts that are longer than the model's context are skipped.
                if self._local.too_long(len(ids), 1) is not None:
                    continue
                try:
                    states.append(self._state(ids)[0])
                except FloatingPointError as error:
                    raise EngineError(
                        f"{self._model.name}: the probe can't learn from {prompt.dialogue} of the "
                        f"train split: {error}."
                    ) from error
                masks.append(mask)
        matrix = np.stack(states)
        mean, spread = matrix.mean(axis=0), matrix.std(axis=0) + np.finfo(float).eps
        return mean, spread, fit_labels((matrix - mean) / spread, masks)

    def _state(self, ids: list[int]) -> tuple[NDArray[np.float64], int]:
        """Computes the state at the end of a prompt; the prefix shared with the last is cached.

        Returns:
            The state, shape (hidden size,), and the number of cached tokens.

        Raises:
            FloatingPointError: If the state is NaN or infinite.
        """
        if self._crops:
            state, known = self._next_state(ids)
        else:
            state, known = self._forward(ids, use_cache=False), 0
        if not state.isfinite().all():
            raise self._local.not_finite("hidden states")
        return state.double().cpu().numpy(), known

    @cached_property
    def _crops(self) -> bool:
        """Whether states computed with a cropped cache equal those of the model's own forward pass.

        They do not if layers keep only the last tokens or one state for all, or if the model
        depends on the length of the whole pass. Otherwise, the states of two fixed texts decide.
        """
        from transformers import DynamicCache
        from transformers.cache_utils import DynamicLayer

        from cradle_engines.local.own_forward import is_same, length_dependence, sample_ids

        lm = self._local.lm
        layers = DynamicCache(config=lm.config).layers
        if length_dependence(lm.config) or any(type(layer) is not DynamicLayer for layer in layers):
            return False
        ids = sample_ids(lm, self._local.tokenizer, 40)
        second = ids[:20] + ids[30:]
        try:
            self._next_state(ids[:30])
            found, _ = self._next_state(second)
        except Exception:  # An architecture may raise any exception.
            return False
        finally:
            self._read, self._cache = [], None
        own = self._forward(second, use_cache=False)
        return is_same(lm, found, own) or not own.isfinite().all()

    def _next_state(self, ids: list[int]) -> tuple[Tensor, int]:
        """Computes a state with the cache of the last prompt; gives the number of cached tokens."""
        from transformers import DynamicCache

        known = shared_length(ids[:-1], self._read)
        # After an exception there is no cache, because it may be incomplete.
        cache, self._cache = self._cache, None
        if cache is None or not known:
            cache, known = DynamicCache(config=self._local.lm.config), 0
        elif known < len(self._read):
            cache.crop(known - len(self._read))
        state = self._forward(ids[known:], past_key_values=cache)
        self._read, self._cache = ids, cache
        return state, known

    def _forward(self, ids: list[int], **more: Any) -> Tensor:
        """Computes the state of the last token. Shape (hidden size,)."""
        import torch

        with torch.inference_mode():
            states = self._local.lm(
                input_ids=torch.tensor([ids], device=self._local.device),
                output_hidden_states=True,
                logits_to_keep=1,
                **more,
            ).hidden_states
        state: Tensor = states[round(_DEPTH * (len(states) - 1))][0, -1].float()
        return state
