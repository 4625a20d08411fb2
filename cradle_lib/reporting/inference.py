"""Makes the runs that a page shows, unless they ship or have been made."""

from __future__ import annotations

from collections.abc import Sequence

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.places import journal_path
from cradle_lib.detection.predictions import Predictions
from cradle_lib.detection.registry import find_model, load_registry
from cradle_lib.detection.run import run
from cradle_lib.errors import JournalError
from cradle_lib.record import History
from cradle_lib.reporting.runs import load_run


def run_model(model: str, corpus: Corpus, history: History = "self") -> Predictions:
    """Runs a model over a corpus, or over the sample that the registry asks for.

    A baseline whose code, lexicon or training data changed is run anew: that takes seconds, and
    its old journal is set aside under another ending. The journal of any other model is never
    touched for such a reason, because it may have cost hours or money.

    Args:
        model: Id in the registry.
        corpus: The corpus.
        history: Whose tags the history shows.

    Returns:
        The predictions: from the journal that ships, if there is one for this corpus, else
        from a run that is started, or taken up where it stopped.

    Raises:
        CradleError: If there is no such model, it can't run on this machine, or its journal was
            made with other settings.
    """
    entry = find_model(model, load_registry())
    if not journal_path(entry, corpus, history, out=paths.SHIPPED_RUNS).exists():
        journal = journal_path(entry, corpus, history, out=paths.RUNS)
        try:
            run(entry, corpus, out=journal, history=history, sample=entry.sample)
        except JournalError:
            if entry.group != "baseline" or not journal.exists():
                raise
            journal.replace(journal.with_suffix(".outdated"))
            run(entry, corpus, out=journal, history=history, sample=entry.sample)
    return load_run(entry, corpus, history)


def run_histories(models: Sequence[str], corpus: Corpus) -> None:
    """Runs models with the gold tags, and with no tags, in the history.

    Args:
        models: Ids in the registry.
        corpus: The corpus.

    Raises:
        CradleError: As :func:`run_model`.
    """
    histories: tuple[History, ...] = ("gold", "none")
    for model in models:
        for history in histories:
            run_model(model, corpus, history)
