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

from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cradle_lib.corpus import Corpus
from cradle_lib.detection.baselines.tfidf import Linear, fit_labels, train_split
from cradle_lib.detection.engine import Options, Sequential
from cradle_lib.detection.local.local_engine import LocalEngine, shared_length
from cradle_lib.detection.local.revision import weights_pin
from cradle_lib.detection.model import Model
from cradle_lib.detection.session import Answer, Prompt, gold_questions
from cradle_lib.errors import EngineError
from cradle_lib.prompts import load_template

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

    def __init__(self, model: Model, corpus: Corpus, options: Options) -> None:
        super().__init__(model, options)
        self._train = train_split(corpus)
        self._read: list[int] = []
        self._cache: Any = None

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
        import torch
        from transformers import DynamicCache

        lm = self._local.lm
        known = shared_length(ids[:-1], self._read)
        # After an exception there is no cache, because it may be incomplete.
        cache, self._cache = self._cache, None
        if cache is None or not known:
            cache, known = DynamicCache(config=lm.config), 0
        elif known < len(self._read):
            cache.crop(known - len(self._read))
        with torch.inference_mode():
            states = lm(
                input_ids=torch.tensor([ids[known:]], device=self._local.device),
                past_key_values=cache,
                output_hidden_states=True,
                logits_to_keep=1,
            ).hidden_states
        state = states[round(_DEPTH * (len(states) - 1))][0, -1]
        if not state.isfinite().all():
            raise self._local.not_finite("hidden states")
        self._read, self._cache = ids, cache
        return state.double().cpu().numpy(), known
