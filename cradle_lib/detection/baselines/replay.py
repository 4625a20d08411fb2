"""Answers from a journal: the same questions get the answers that they got before."""

from __future__ import annotations

import hashlib
from pathlib import Path

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.engine import Options, Sequential
from cradle_lib.detection.journals.journal import read_journal
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.parsing import Outcome
from cradle_lib.detection.session import Answer, Prompt
from cradle_lib.errors import EngineError, JournalError


class Replay(Sequential):
    """Looks every prompt up by its key.

    Useful to read stored raw answers anew, or to show a run without its model.

    Args:
        path: A journal; relative paths start at the top of the repository.

    Raises:
        EngineError: If the journal can't be read.
    """

    kind = "baseline"
    needs_weights = True

    @classmethod
    def create(cls, model: Model, corpus: Corpus, options: Options) -> Replay:
        """Makes the engine; the entry's weights are the journal."""
        return cls(Path(str(model.weights)))

    def __init__(self, path: Path) -> None:
        self.path = paths.ROOT / path
        try:
            _, stored = read_journal(self.path)
        except JournalError as error:
            raise EngineError(str(error)) from error
        self.revision = f"sha256:{hashlib.sha256(self.path.read_bytes()).hexdigest()}"
        self._stored = {prediction.key: prediction for prediction in stored}

    def reply(self, prompt: Prompt) -> Answer:
        """Gives the stored answer; its text is read anew unless no answer came at the time.

        Raises:
            EngineError: If the journal has no answer to this very prompt.
        """
        stored = self._stored.get(prompt.key)
        if stored is None:
            raise EngineError(
                f"{paths.shown(self.path)}: holds no answer to dialogue {prompt.dialogue}, turn "
                f"{prompt.turn} as it is asked here. Replay it with the corpus, the prompt and "
                "the history that it was made with."
            )
        came = stored.outcome in (Outcome.OK, Outcome.UNPARSED) and stored.reason is None
        return Answer(
            text=stored.answer,
            outcome=None if came else stored.outcome,
            reason=stored.reason,
            tokens_in=stored.tokens_in,
            tokens_cached=stored.tokens_cached,
            tokens_written=stored.tokens_written,
            tokens_out=stored.tokens_out,
            served=stored.served,
            dropped=stored.dropped,
        )
