"""The classical baseline: TF-IDF and one logistic regression per label, current turn only.

Settings are scikit-learn's plain defaults for text where there is a choice: words and
pairs of words that occur at least twice, sublinear term frequency, an L2-penalized
logistic regression with C = 1 and balanced classes, threshold one half. On the real
release, others measured 22.90 turn-level micro F1 for this kind of system.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cradle_lib import paths
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection.engine import Options, Sequential, checksum
from cradle_lib.detection.model import Model
from cradle_lib.detection.session import Answer, Prompt, harmless
from cradle_lib.errors import CorpusError, EngineError
from cradle_lib.labels import LABELS, format_mask

_HELD_OUT: Final = ("test", "dev", "validation")


class Tfidf(Sequential):
    """Learns the train split that lies beside the corpus, then tags each turn by itself.

    Args:
        corpus: The corpus of the run.

    Raises:
        EngineError: If there is no train split beside it.
    """

    kind = "baseline"

    @classmethod
    def create(cls, model: Model, corpus: Corpus, options: Options) -> Tfidf:
        """Makes the engine; it finds its train split beside the corpus."""
        return cls(corpus)

    def __init__(self, corpus: Corpus) -> None:
        self._train = _train_split(corpus)
        self.revision = f"train:{self._train.fingerprint} code:{checksum(__file__)}"

    def reply(self, prompt: Prompt) -> Answer:
        """Tags the current turn; the history plays no part."""
        vectorizer, labels, weights, biases = self._fitted
        # A probability above one half is a positive sum; one product serves all labels.
        sums = vectorizer.transform([prompt.current]) @ weights + biases
        return Answer(text=format_mask(sum(1 << labels[i] for i in np.flatnonzero(sums[0] > 0))))

    @cached_property
    def _fitted(self) -> tuple[Any, list[int], NDArray[np.float64], NDArray[np.float64]]:
        """The vectorizer, the labels learned, weights (words, labels) and biases (labels,)."""
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression

        texts, masks = [], []
        for dialogue in self._train:
            for turn in dialogue.user_turns:
                texts.append(harmless(dialogue.utterance(turn)))
                masks.append(turn.mask)
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        try:
            matrix = vectorizer.fit_transform(texts)
        except ValueError as error:
            raise EngineError(
                f"{self._train.name}: too little text to learn from ({error})"
            ) from error
        classifiers = {}
        for index in range(len(LABELS)):
            target = (np.array(masks) >> index) & 1
            # A label that the train split lacks, or that every turn has, can't be learned.
            if 0 < target.sum() < len(target):
                classifier = LogisticRegression(class_weight="balanced", max_iter=1000)
                classifiers[index] = classifier.fit(matrix, target)
        weights = [c.coef_[0] for c in classifiers.values()] or [np.zeros(matrix.shape[1])]
        biases = [c.intercept_[0] for c in classifiers.values()] or [0.0]
        return vectorizer, list(classifiers), np.stack(weights, axis=1), np.array(biases)


def _train_split(corpus: Corpus) -> Corpus:
    candidates = [_sibling(corpus.path, name) for name in _HELD_OUT] if corpus.path else []
    for path in candidates:
        if path is not None and path.is_file():
            try:
                return load_corpus(str(path))
            except CorpusError as error:
                raise EngineError(f"tfidf can't learn: {error}") from error
    place = f"beside {paths.shown(corpus.path)}" if corpus.path else "in a file"
    raise EngineError(
        f"tfidf learns from the train split of {corpus.name}, and there is none {place}. "
        "Name it like the test split, with 'train' in place of 'test'."
    )


def _sibling(path: Path, held_out: str) -> Path | None:
    if held_out not in path.name:
        return None
    return path.with_name(path.name.replace(held_out, "train", 1))
