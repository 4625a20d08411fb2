"""The error about a run that was not made: which settings differ, and which command makes it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from cradle_lib import paths, strict_yaml
from cradle_lib.corpus import Corpus
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.models.registry import load_registry, resolve, spec_of
from cradle_lib.detection.runs.journal import journal_files, journal_path, journals_of, read_record
from cradle_lib.detection.runs.matching import other_settings
from cradle_lib.errors import NoRunError
from cradle_lib.record import History, describe


def missing_run(
    entry: Model,
    corpus: Corpus,
    history: History = "self",
    limit: int | None = None,
    sample: int | None = None,
) -> NoRunError:
    """Makes the error for a model that was not run over a corpus with these settings.

    Args:
        entry: The model.
        corpus: The corpus.
        history: The labels that the history shows.
        limit: Maximum number of dialogues; ``None`` for all.
        sample: Number of dialogues to draw; ``None`` for all.

    Raises:
        JournalError: If a journal of the model can't be read.
    """
    others = []
    for file in stored_with_any_settings(entry, corpus, history):
        differences = other_settings(entry, corpus, history, read_record(file))
        others.append(f"{describe(differences) or 'not all dialogues'} ({paths.shown(file)})")
    wanted = paths.shown(journal_path(entry.id, corpus, history))
    why = f"{wanted}: there is no run of {entry.name} over {corpus.name}"
    if others:
        why = f"no run of {entry.name} over {corpus.name} has the settings asked for: "
        why += "; ".join(others)
    return NoRunError(f"{why}. Make it with {how_to_run(entry, corpus, history, limit, sample)}.")


def stored_with_any_settings(
    entry: Model, corpus: Corpus, history: History = "self"
) -> Iterator[Path]:
    """Finds the first file of each run of a model over a corpus, whatever its settings."""
    for folder in (paths.SHIPPED_RUNS, paths.RUNS):
        for path in journals_of(entry.id, corpus, history, folder):
            yield journal_files(path)[0]


def how_to_run(
    entry: Model, corpus: Corpus, history: History, limit: int | None, sample: int | None
) -> str:
    """Gives the command that makes a run, or how to make it in Python."""
    place = _corpus_options(corpus)
    name = entry.id if entry.id in load_registry() else spec_of(entry)
    if name is None or place is None:
        return "`run_model`, outside the book"
    words = ["cradle", "infer", "--model", name, *place]
    settings = _given_settings(entry, resolve(name))
    settings |= {"history": None if history == "self" else history, "limit": limit}
    for setting, value in settings.items():
        if value is not None:
            words += ["--set", f"{setting}={_written(value)}"]
    if sample is not None:
        words += ["--sample", str(sample)]
    return f"`{shlex.join(words)}`"


def _given_settings(entry: Model, plain: Model) -> dict[str, Any]:
    """Finds the settings that were given for a model, as ``--set`` takes them."""
    found = {
        field: getattr(entry, field)
        for field in ("name", "engine", "trained_on", "base_url", "prompt", "neutralise")
        if getattr(entry, field) != getattr(plain, field)
    }
    if entry.key != plain.key and entry.key is not None:
        found["key"] = entry.key.variable
    usual = plain.decoding.settings if plain.decoding else {}
    own = entry.decoding.settings if entry.decoding else {}
    return found | {name: value for name, value in own.items() if usual.get(name) != value}


def _written(value: Any) -> str:
    """Writes a value so that ``--set`` reads it again: as text, or else as JSON."""
    if isinstance(value, str):
        with suppress(ValueError):
            if strict_yaml.load(value) != value:
                return json.dumps(value)
        return value
    return json.dumps(value)


def _corpus_options(corpus: Corpus) -> list[str] | None:
    """Gives the options that name a corpus; ``None`` for a part, or dialogues without a file."""
    if corpus.path is None:
        return None
    split = corpus.path.stem
    for name, folder in (("surrogate", paths.SURROGATE), ("hub", paths.RELEASE)):
        if corpus.path.parent == folder and corpus.name == f"{name}-{split}":
            return [] if corpus.name == "surrogate-test" else ["--corpus", name, "--split", split]
    return ["--corpus", paths.shown(corpus.path)] if corpus.name == split else None
