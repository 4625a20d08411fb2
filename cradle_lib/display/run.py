"""What pages need to know of a run, so that they need no model."""

from __future__ import annotations

from typing import Protocol

from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.record import Record


class Run(Protocol):
    """A run over dialogues; :class:`.Predictions` are one."""

    @property
    def record(self) -> Record:
        """The record of the run."""

    @property
    def corpus(self) -> Corpus:
        """The dialogues that are answered."""

    @property
    def is_finished(self) -> bool:
        """Whether all dialogues that the run chose are answered."""
