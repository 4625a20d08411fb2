"""Where the journal of a run lies.

A module of its own, so that what only reads journals does not depend on engines.
"""

from __future__ import annotations

from pathlib import Path

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.registry import Model
from cradle_lib.errors import JournalError
from cradle_lib.record import History


def journal_path(
    model: Model,
    corpus: Corpus,
    history: History = "self",
    shard: str | None = None,
    out: Path = paths.RUNS,
) -> Path:
    """Chooses the place of a run's journal: ``OUT/CORPUS/MODEL[.HISTORY][.shard-I-of-N].jsonl``.

    Files of the same name share the place, so that it can be typed; the journal knows which of
    them it is about and refuses the other.

    Args:
        model: An entry of the registry.
        corpus: The corpus.
        history: Whose tags the history shows; the paper's ``self`` is not named.
        shard: ``i/n``, if the run is one of several parts.
        out: Folder for runs.

    Returns:
        The path, whether there is a journal or not.
    """
    parts = [model.id]
    if history != "self":
        parts.append(f"history-{history}")
    if shard is not None:
        parts.append("shard-{}-of-{}".format(*parse_shard(shard)))
    return out / corpus.name / f"{'.'.join(parts)}.jsonl"


def parse_shard(shard: str) -> tuple[int, int]:
    """Reads ``i/n``.

    Args:
        shard: A part's number from 0, a slash, and how many parts there are.

    Returns:
        Both numbers.

    Raises:
        JournalError: If that is not what it says.
    """
    index, slash, count = shard.partition("/")
    if slash and index.isdecimal() and count.isdecimal() and int(index) < int(count):
        return int(index), int(count)
    raise JournalError(f"shard {shard!r}: expected i/n with i from 0 to n-1, such as 0/4")
