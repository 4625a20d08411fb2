"""Data frames of the answers and the records of stored runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cradle_lib import paths
from cradle_lib.arguments import checked
from cradle_lib.corpus import Corpus
from cradle_lib.corpus.dialogue import valid_unicode
from cradle_lib.detection.models.registry import load_registry, resolve
from cradle_lib.detection.protocol.parsing import Outcome
from cradle_lib.detection.protocol.session import Prediction
from cradle_lib.detection.runs.find_runs import find_journal, journal_named, leave_out
from cradle_lib.detection.runs.journal import journal_files, read_journal
from cradle_lib.labels import format_prediction
from cradle_lib.record import Record

if TYPE_CHECKING:
    import pandas as pd

_TOKENS: Final = ("tokens_in", "tokens_cached", "tokens_written", "tokens_out")
_COLUMNS: Final = (
    "run", "system", "dialogue", "turn", "question", "outcome", "predicted", "answer", *_TOKENS,
    "seconds",
)  # fmt: skip


@checked
def stored_answers(corpus: Corpus, models: Sequence[str]) -> pd.DataFrame:
    """Lists the answers of runs, including those of incomplete dialogues.

    Args:
        corpus: The corpus of the runs.
        models: Ids in the registry, specs, names of journals, or paths of journals (ending with
            ``.jsonl``); models without a run are left out.

    Returns:
        One row for each answer, in the order of the models and of their journals; empty if
        there is no run.

        - ``run`` (str): the name of the run in ``models``; ``system`` (str): the model's
          name; ``dialogue`` (str) and ``turn`` (int): the turn's id.
        - ``question`` (str): hash of the whole question; equal only for the same question.
        - ``outcome`` (str): ``ok``, ``unparsed``, ``refused`` or ``failed``; ``predicted`` (str):
          labels joined by ``; ``, ``none`` or ``unusable answer``; ``answer`` (str): the raw text.
        - ``tokens_in``, ``tokens_cached``, ``tokens_written``, ``tokens_out`` (Int64): tokens of
          the prompt, of these the tokens read from a cache and written to one, and tokens of the
          answer; missing if unknown.
        - ``seconds`` (float): the time that the answer took.

    Raises:
        CradleError: If there is no such model, or a journal can't be read.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for name in models:
        for record, answers in _journals(name, corpus):
            rows += [
                {
                    "run": name,
                    "system": record.name,
                    "dialogue": valid_unicode(answer.dialogue),
                    "turn": answer.turn,
                    "question": valid_unicode(answer.key),
                    "outcome": str(answer.outcome),
                    "predicted": format_prediction(
                        answer.mask, usable=answer.outcome is Outcome.OK
                    ),
                    "answer": valid_unicode(answer.answer),
                    **{column: getattr(answer, column) for column in _TOKENS},
                    "seconds": answer.seconds,
                }
                for answer in answers
            ]
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    return frame.astype(dict.fromkeys(_TOKENS, "Int64") | {"seconds": float, "turn": int})


@checked
def stored_records(corpus: Corpus, models: Sequence[str]) -> pd.DataFrame:
    """Compares the records of runs.

    Args:
        corpus: The corpus of the runs.
        models: As for :func:`stored_answers`.

    Returns:
        One row for each field of a record (the index, ``field``) and one column for each run (of
        its first shard), named as in ``models``. Values are text, or missing.

    Raises:
        CradleError: As :func:`stored_answers`.
    """
    import pandas as pd

    records = {
        name: found[0][0].to_frame().set_index("field")["content"]
        for name in models
        if (found := _journals(name, corpus))
    }
    return pd.DataFrame(records).rename_axis("field")


def _journals(name: str, corpus: Corpus) -> list[tuple[Record, list[Prediction]]]:
    """Reads the journals of a run or of its shards; a page leaves out a run that can't be read."""
    found = []
    with leave_out() if os.environ.get(paths.PAGE) else nullcontext():
        found = [read_journal(file) for file in run_files(name, corpus)]
    return found


def run_files(name: str, corpus: Corpus) -> list[Path]:
    """Lists the journals of a run or of its shards; empty if there is no run.

    Of the runs of a model in the registry, that with the entry's settings comes first.

    Raises:
        CradleError: If there is no such model, or a journal can't be read.
    """
    registry, path = load_registry(), journal_named(name, corpus)
    if path is None or name in registry:
        path = find_journal(resolve(name, registry), corpus) or path
    return [file for file in journal_files(path) if file.exists()] if path else []
