"""The classical baseline with history: the current turn, the earlier turns, and its own tags.

The same words and the same logistic regressions as :mod:`~cradle_lib.detection.baselines.tfidf`,
with three blocks of features: the words of the current turn, the words of the dialogue before it,
and the labels that the history shows. It learns with the gold tags in the history, as in the
fine-tuning of a language model, and predicts with its own tags there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from cradle_lib.detection.baselines.tfidf import Learner, Linear, fit_labels, make_vectorizer
from cradle_lib.detection.protocol.session import TAG, Prompt, gold_questions
from cradle_lib.labels import LABELS
from cradle_lib.prompts import load_template


class TfidfHistory(Learner):
    """Predicts each turn from its words, earlier words and earlier tags; see :class:`.Learner`."""

    # The checksum that earlier releases computed of the code: existing runs keep their identity.
    version = "930661ba03cd"

    def labels(self, prompts: Sequence[Prompt]) -> list[str]:
        """Predicts the labels of the current turns from the turns and their histories."""
        current, before, linear = self._fitted
        words = current.transform([prompt.current for prompt in prompts])
        earlier = before.transform([_earlier_turns(prompt) for prompt in prompts])
        return linear.predict(_joined(words, earlier, [prompt.tagged for prompt in prompts]))

    @cached_property
    def _fitted(self) -> tuple[Any, Any, Linear]:
        template = load_template("append")
        prompts, masks = [], []
        for dialogue in self._train:
            for prompt, mask in gold_questions(dialogue, template):
                prompts.append(prompt)
                masks.append(mask)
        current, before = make_vectorizer(), make_vectorizer()
        matrix = _joined(
            current.fit_transform([prompt.current for prompt in prompts]),
            before.fit_transform([_earlier_turns(prompt) for prompt in prompts]),
            [prompt.tagged for prompt in prompts],
        )
        return current, before, fit_labels(matrix, masks)


def _earlier_turns(prompt: Prompt) -> str:
    lines = prompt.history.splitlines()
    return "\n".join(line for line in lines if not line.startswith(f"{TAG}:"))


def _joined(current: Any, before: Any, tagged: Sequence[int]) -> Any:
    """Concatenates the features: current words, earlier words, one column for each label shown."""
    from scipy.sparse import csr_matrix, hstack

    shown = (np.array(tagged)[:, None] >> np.arange(len(LABELS))) & 1
    return hstack([current, before, csr_matrix(shown)], format="csr")
