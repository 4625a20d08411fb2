"""Paths of journals and of their shards."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.model import Model
from cradle_lib.errors import JournalError
from cradle_lib.files import visible_files
from cradle_lib.record import History

# Environment variable of pages that are being executed: building the book starts no model.
PAGE: Final = "CRADLE_PAGE"


def journal_path(
    model: Model,
    corpus: Corpus,
    history: History = "self",
    shard: str | None = None,
    out: Path | None = None,
) -> Path:
    """Chooses the place of a run's journal: ``OUT/CORPUS/MODEL[.HISTORY][.shard-I-of-N].jsonl``.

    Corpus files of the same name share the path, so that it can be typed. The journal records
    which file it is about and refuses another one.

    Args:
        model: An entry of the registry.
        corpus: The corpus.
        history: Whose tags the history shows; the paper's ``self`` is not named.
        shard: ``i/n``, if the run is one of several parts.
        out: Folder for runs; by default :data:`.paths.RUNS`.

    Returns:
        The path, whether there is a journal or not.
    """
    parts = [model.id]
    if history != "self":
        parts.append(f"history-{history}")
    if shard is not None:
        parts.append("shard-{}-of-{}".format(*parse_shard(shard)))
    return (paths.RUNS if out is None else out) / corpus.name / f"{'.'.join(parts)}.jsonl"


def stored_as(path: Path) -> list[Path]:
    """Finds the files of a run: its journal, or else its existing shards."""
    return [path] if path.exists() else [file for _, _, file in _shards(path)]


def other_shards(path: Path) -> list[Path]:
    """Finds the other shards of the run to which a shard belongs; none for a whole journal."""
    stem, part, _ = path.name.partition(".shard-")
    if not part:
        return []
    return [file for _, _, file in _shards(path.with_name(f"{stem}.jsonl")) if file != path]


def journal_files(path: Path, *, partial: bool = False) -> list[Path]:
    """Finds the files of a run, and checks that no shard is missing unless ``partial``.

    If there is neither a journal nor a shard, the path of the journal is returned; reading it then
    raises the error.

    Raises:
        JournalError: If shards are missing, or there are shards of two divisions.
    """
    shards = [] if path.exists() else _shards(path)
    counts = sorted({count for _, count, _ in shards})
    if len(counts) > 1:
        raise JournalError(
            f"{paths.shown(path)}: there are shards of {' and of '.join(map(str, counts))}. "
            "Move those that you don't want away."
        )
    if not shards:
        return [path]
    missing = sorted(set(range(counts[0])) - {index for index, _, _ in shards})
    if missing and not partial:
        names = ", ".join(f"{index}/{counts[0]}" for index in missing)
        are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
        raise JournalError(
            f"{paths.shown(path)}: of its {counts[0]} shards, {names} {are} missing. "
            f"Make {them} with `cradle infer --shard`."
        )
    return [file for _, _, file in shards]


def made_runs(*folders: Path) -> dict[str, list[str]]:
    """Lists the runs in some folders without reading them; a run may be unfinished.

    Returns:
        For each model id the names of the corpora, followed by the history if it is not ``self``.
    """
    found: dict[str, list[str]] = {}
    for folder in folders:
        for file in visible_files(folder, "*/*.jsonl"):
            stem = file.name.partition(".shard-")[0].removesuffix(".jsonl")
            name, _, history = stem.partition(".history-")
            run = file.parent.name + (f", history {history}" if history else "")
            runs = found.setdefault(name, [])
            runs += [run] if run not in runs else []
    return found


def _shards(path: Path) -> list[tuple[int, int, Path]]:
    """Finds the shards of a journal: number, number of all, and file."""
    name = re.compile(re.escape(path.stem) + r"\.shard-(\d+)-of-(\d+)\.jsonl")
    found = ((name.fullmatch(file.name), file) for file in path.parent.glob("*.jsonl"))
    return sorted((int(match[1]), int(match[2]), file) for match, file in found if match)


def parse_shard(shard: str) -> tuple[int, int]:
    """Parses ``i/n``: the index of a shard from 0, and the number of shards.

    Raises:
        JournalError: If it is not of this form.
    """
    index, slash, count = shard.partition("/")
    if slash and index.isdecimal() and count.isdecimal() and int(index) < int(count):
        return int(index), int(count)
    raise JournalError(f"shard {shard!r}: expected i/n with i from 0 to n-1, such as 0/4")
