"""Makes the run that an inference page shows, unless it ships or has been made."""

from __future__ import annotations

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.places import journal_path
from cradle_lib.detection.predictions import Predictions
from cradle_lib.detection.registry import find_model, load_registry
from cradle_lib.detection.run import run
from cradle_lib.errors import JournalError
from cradle_lib.reporting.runs import load_run


def run_model(model: str, corpus: Corpus) -> Predictions:
    """Runs a model over a corpus, or over the sample that the registry asks for.

    A baseline whose code, lexicon or training data changed is run anew: that takes seconds, and
    its old journal is set aside under another ending. The journal of any other model is never
    touched for such a reason, because it may have cost hours or money.

    Args:
        model: Id in the registry.
        corpus: The corpus.

    Returns:
        The predictions: from the journal that ships, if there is one for this corpus, else
        from a run that is started, or taken up where it stopped.

    Raises:
        CradleError: If there is no such model, it can't run on this machine, or its journal was
            made with other settings.
    """
    entry = find_model(model, load_registry())
    if not journal_path(entry, corpus, out=paths.SHIPPED_RUNS).exists():
        try:
            run(entry, corpus, out=paths.RUNS, sample=entry.sample)
        except JournalError:
            journal = journal_path(entry, corpus, out=paths.RUNS)
            if entry.group != "baseline" or not journal.exists():
                raise
            journal.replace(journal.with_suffix(".outdated"))
            run(entry, corpus, out=paths.RUNS, sample=entry.sample)
    return load_run(entry, corpus)
