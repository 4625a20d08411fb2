"""Finds the journals that answer a question: a model with its settings, asked about a corpus.

A journal's name does not contain the settings. A question is therefore compared with the record of
each journal of its model, as far as its settings are known without the model's packages, a network
or a key. The first journal has the plain name of :func:`.journal_path`; for other settings a
checksum of them follows the model's id.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.models.engine import code_of, find_engine
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.runs.journal import (
    CHECKSUM_DIGITS,
    all_failed,
    journal_path,
    journals_of,
    read_record,
    shard_path,
)
from cradle_lib.errors import JournalError
from cradle_lib.prompts import load_template
from cradle_lib.record import (
    VERSIONED,
    Differences,
    History,
    Record,
    canonical,
    describe,
    differing,
    with_prompt_names,
)

# Settings that the engine may find only when it starts.
_FOUND_LATER: Final = frozenset({"revision", "code", "tokenizer", "date"})


def other_settings(model: Model, corpus: Corpus, history: History, record: Record) -> Differences:
    """Finds the settings in which a stored run differs from a question.

    Args:
        model: An entry of the registry.
        corpus: The corpus.
        history: The labels that the history shows.
        record: The record of the stored run.

    Returns:
        Each such setting with its value in the question and in the record; empty if the run answers
        the question. A baseline's code, data and text of the prompt are not compared, because
        running it brings its journal up to date.

    Raises:
        RegistryError: If the model's prompt does not exist.
    """
    asked, stored = _settings(model, corpus, history), record.flat_settings
    chat = stored.pop("chat", {})
    added = model.added_switches(chat)
    if left := {name: value for name, value in chat.items() if name not in added}:
        stored["chat"] = left
    later = stored.keys() - asked.keys() - {"neutralise", "trained_on"}
    if "from_checkpoint" not in asked:
        later &= _FOUND_LATER
    same_name = record.prompt == model.prompt
    if model.kind == "baseline" and same_name:
        later.add("prompt_hash")
    found = {name: pair for name, pair in differing(asked, stored).items() if name not in later}
    found = with_prompt_names(found, model.prompt, record.prompt)
    if found or model.kind == "baseline":
        return found
    # Compared last, because the checksum of large weights takes time.
    kind = find_engine(model.engine)
    revision = f"{kind.pin(model, corpus)} code:{kind.version}".removesuffix(" code:None").strip()
    if not re.fullmatch(re.escape(revision).replace(r"\*", ".*"), record.revision or ""):
        found["revision"] = (revision or None, record.revision)
    return found | differing({"code": code_of(kind)}, {"code": record.code})


def matching_journals(
    model: Model, corpus: Corpus, history: History = "self", *folders: Path
) -> Iterator[Path]:
    """Finds the journals that answer a question.

    Args:
        model: An entry of the registry.
        corpus: The corpus.
        history: The labels that the history shows.
        folders: Folders of runs; by default that of the shipped runs, then that of the user's.

    Yields:
        Paths of journals; that of a run in shards does not exist itself.

    Raises:
        JournalError: If a journal before the first match can't be read.
    """
    for folder in folders or (paths.SHIPPED_RUNS, paths.RUNS):
        for path in journals_of(model.id, corpus, history, folder):
            if not other_settings(model, corpus, history, read_record(path)):
                yield path


def run_path(
    model: Model,
    corpus: Corpus,
    history: History = "self",
    shard: str | None = None,
    out: Path | None = None,
    notice: Callable[[str], None] = lambda _: None,
    *,
    on_any_change: bool = False,
) -> Path:
    """Chooses the journal of a run: one with the same settings, or else a new one.

    Args:
        model: An entry of the registry.
        corpus: The corpus.
        history: The labels that the history shows.
        shard: ``i/n``, if the run is one of several parts.
        out: Folder for runs, by default :data:`.paths.RUNS`; or the path of the journal, which is
            returned unchanged, if it ends with ``.jsonl``.
        notice: Called with a sentence if the plain name belongs to a run with other settings.
        on_any_change: Whether a run also gets a new journal if only the weights, the code or the
            text of the prompt have changed. Otherwise the earlier journal is chosen, and opening it
            is refused, so that no long run begins anew by mistake.

    Returns:
        The path of the journal or of the shard.

    Raises:
        RegistryError: If the model's prompt does not exist.
    """
    out = paths.RUNS if out is None else out
    if out.suffix == ".jsonl":
        return out
    plain = journal_path(model.id, corpus, history, out=out)
    taken: Differences = {}
    changed: Path | None = None
    for path in journals_of(model.id, corpus, history, out):
        # Opening the journal reports that it is damaged.
        with suppress(JournalError):
            found = other_settings(model, corpus, history, read_record(path))
            if not found:
                return shard_path(path, shard)
            if found.keys() <= VERSIONED:
                changed = changed or path
            if path == plain and not all_failed(path):
                taken = found
    if changed is not None and not on_any_change:
        return shard_path(changed, shard)
    if not taken:
        return shard_path(plain, shard)
    asked = _settings(model, corpus, history)
    if model.kind != "baseline":
        kind = find_engine(model.engine)
        asked |= {"revision": kind.pin(model, corpus), "code": code_of(kind)}
    checksum = hashlib.sha256(canonical(asked).encode()).hexdigest()[:CHECKSUM_DIGITS]
    path = journal_path(model.id, corpus, history, out=out, checksum=checksum)
    notice(
        f"{paths.shown(plain)} is a run with other settings ({describe(taken)}), so this "
        f"run is written to {paths.shown(path)}."
    )
    return shard_path(path, shard)


def _settings(model: Model, corpus: Corpus, history: History) -> dict[str, Any]:
    """Gives the settings of a question that its entry and the corpus determine."""
    return {
        "model": model.id,
        "engine": model.engine,
        "weights": model.weights,
        "endpoint": model.base_url,
        "prompt_hash": load_template(model.prompt).hash,
        "history": history,
        "corpus": corpus.name,
        **({} if model.trained_on is None else {"trained_on": model.trained_on}),
        **({} if model.neutralise else {"neutralise": False}),
        **(model.decoding.settings if model.decoding else {}),
    }
