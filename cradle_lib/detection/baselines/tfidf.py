"""The classical baseline: TF-IDF and one logistic regression per label, current turn only.

Settings are scikit-learn's plain defaults for text where there is a choice: words and
pairs of words that occur at least twice, sublinear term frequency, an L2-penalized
logistic regression with C = 1 and balanced classes, threshold one half. A published system
of this kind has a turn-level micro F1 of 22.90 on the real release (``data/published``).
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from cradle_lib import paths
from cradle_lib.corpus import Corpus, Dialogue, load_corpus
from cradle_lib.detection.models.engine import Emit, Engine, Options, Questions, failure
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.protocol.neutralise import neutralise
from cradle_lib.detection.protocol.session import Answer, Prompt
from cradle_lib.errors import CorpusError, CradleError, EngineError
from cradle_lib.labels import LABELS, format_mask

#: Environment variable: the corpus that baselines learn from.
TRAIN: Final = "CRADLE_TRAIN"
_HELD_OUT: Final = ("test", "dev", "validation")


class Learner(Engine):
    """An engine that learns from the dialogues of :func:`train_split`.

    Args:
        corpus: The corpus of the run.

    Raises:
        CradleError: As :func:`train_split`.
    """

    kind = "baseline"

    @classmethod
    def create(cls, model: Model, corpus: Corpus, options: Options) -> Self:
        """Makes the engine and loads the train split."""
        return cls(corpus)

    def __init__(self, corpus: Corpus) -> None:
        self._train = train_split(corpus)
        self.revision = f"train:{self._train.fingerprint}"

    @abstractmethod
    def labels(self, prompts: Sequence[Prompt]) -> list[str]:
        """Predicts the label text of each prompt."""

    def answer_all(self, sessions: Iterable[Questions], emit: Emit) -> None:
        """Predicts the next turns of all dialogues in one batch, which scikit-learn does faster."""
        waiting = list(sessions)
        while prompts := [each.prompt for each in waiting if each.prompt is not None]:
            waiting = [each for each in waiting if each.prompt is not None]
            started = time.perf_counter()
            try:
                answers = [Answer(text) for text in self.labels(prompts)]
            except CradleError:
                raise
            except Exception as error:  # Such as a train split with too few words to learn from.
                answers = [failure(error)] * len(prompts)
            seconds = (time.perf_counter() - started) / len(prompts)
            for session, answer in zip(waiting, answers, strict=True):
                emit(session.answer(replace(answer, seconds=seconds)))


class Tfidf(Learner):
    """Predicts each turn from its own text; see :class:`Learner`."""

    # The checksum that earlier releases computed of the code: existing runs keep their identity.
    version = "64da3d15a65e"

    def labels(self, prompts: Sequence[Prompt]) -> list[str]:
        """Predicts the labels of the current turns; the history is ignored."""
        vectorizer, linear = self._fitted
        return linear.predict(vectorizer.transform([prompt.current for prompt in prompts]))

    @cached_property
    def _fitted(self) -> tuple[Any, Linear]:
        texts, masks = [], []
        for dialogue in self._train:
            for turn in dialogue.user_turns:
                texts.append(neutralise(dialogue.utterance(turn)))
                masks.append(turn.mask)
        vectorizer = make_vectorizer()
        return vectorizer, fit_labels(vectorizer.fit_transform(texts), masks)


def make_vectorizer() -> Any:
    """Makes the vectorizer: words and pairs of words that occur at least twice."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)


@dataclass(frozen=True)
class Linear:
    """One logistic regression for each label that could be learned.

    Attributes:
        labels: Index of each label in :data:`~cradle_lib.labels.LABELS`.
        weights: Shape (features, labels).
        biases: Shape (labels,).
    """

    labels: tuple[int, ...]
    weights: NDArray[np.float64]
    biases: NDArray[np.float64]

    def predict(self, features: Any) -> list[str]:
        """Predicts the label text of each turn.

        Args:
            features: Features of the turns. Shape (turns, features).
        """
        # A positive sum is a probability above one half; one product computes all labels.
        found = features @ self.weights + self.biases > 0
        return [format_mask(mask) for mask in found @ (1 << np.array(self.labels, dtype=int))]


def fit_labels(matrix: Any, masks: Sequence[int]) -> Linear:
    """Fits one logistic regression per label.

    Three engines use it: if its results change, raise the version of each.

    Args:
        matrix: Features of turns. Shape (turns, features).
        masks: Their gold labels.
    """
    from sklearn.linear_model import LogisticRegression

    classifiers = {}
    for index in range(len(LABELS)):
        target = (np.array(masks) >> index) & 1
        # A label that the train split lacks, or that every turn has, can't be learned.
        if 0 < target.sum() < len(target):
            classifier = LogisticRegression(class_weight="balanced", max_iter=1000)
            classifiers[index] = classifier.fit(matrix, target)
    # The empty matrix gives the shape if there is no label to learn.
    empty = np.zeros((matrix.shape[1], 0))
    weights = np.column_stack([empty, *(c.coef_[0] for c in classifiers.values())])
    biases = np.array([c.intercept_[0] for c in classifiers.values()], dtype=np.float64)
    return Linear(tuple(classifiers), weights, biases)


def train_split(corpus: Corpus) -> Corpus:
    """Loads the dialogues with gold labels that a baseline learns from.

    They are those that the environment variable ``CRADLE_TRAIN`` names (``surrogate``, ``hub`` or a
    file), or else the train split in the folder of the corpus.

    Raises:
        EngineError: If there is no train split.
        CorpusError: If it can't be read, has no gold labels, or is named by ``CRADLE_TRAIN`` and
            shares dialogues with the corpus.
    """
    name = os.environ.get(TRAIN)
    found = _named(name) if name else _beside(corpus)
    if found is None:
        place = f"next to {paths.shown(corpus.path)}" if corpus.path else "in a file"
        raise EngineError(
            f"this system learns from the train split of {corpus.name}, but there is none {place}. "
            "Name it like the test split, with 'train' instead of 'test'; or set "
            f"{TRAIN}=surrogate to learn from the surrogate's train split."
        )
    if not len(found.labelled):
        raise CorpusError(f"{found.name} has no gold labels to learn from")
    if name and {_texts(dialogue) for dialogue in corpus} & {_texts(each) for each in found}:
        problem = f"{TRAIN} is {name}, which shares dialogues with {corpus.name}"
        raise CorpusError(problem, hint="Learn from other dialogues than those that are scored.")
    return found.labelled


def _named(name: str) -> Corpus:
    # Pages are executed in another folder than that of the book.
    in_book = paths.ROOT / name
    return load_corpus(in_book if in_book.is_file() and not Path(name).is_file() else name, "train")


def _texts(dialogue: Dialogue) -> tuple[str, ...]:
    return tuple(turn.text for turn in dialogue.turns)


def _beside(corpus: Corpus) -> Corpus | None:
    if corpus.path is None:
        return None
    for name in _HELD_OUT:
        path = corpus.path.with_name(corpus.path.name.replace(name, "train", 1))
        if path != corpus.path and path.is_file():
            return load_corpus(str(path))
    return None
