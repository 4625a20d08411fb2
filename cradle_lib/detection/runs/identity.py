"""The identity of a run: all that shapes an answer, recorded when a run is started."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from cradle_lib.detection.models.addresses import proxy_of
from cradle_lib.detection.models.dates import today
from cradle_lib.detection.models.engine import Engine, code_of, revision_of
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.runs.journal import joined_path, journal_files, read_answers
from cradle_lib.errors import JournalError
from cradle_lib.record import Record


def make_record(
    model: Model, engine: Engine, questions: Mapping[str, Any], path: Path, before: Record | None
) -> Record:
    """Makes the record of a start, with all settings that affect answers.

    Args:
        model: The entry of the registry.
        engine: Its engine.
        questions: The fields that describe the questions: prompt, history, corpus.
        path: The journal.
        before: The record of an earlier start, if there is one.

    Raises:
        EngineError: If the model's files can't be read.
    """
    decoding = model.decoding.settings if model.decoding else {}
    record = Record.create(
        model=model.id,
        name=model.name,
        group=model.group,
        engine=model.engine,
        weights=model.weights,
        revision=revision_of(engine, model),
        trained_on=model.trained_on,
        tokenizer=engine.tokenizer,
        decoding=decoding | engine.checkpoint_decoding(),
        remote=model.remote,
        endpoint=model.base_url,
        proxy=proxy_of(model) if model.kind == "service" else None,
        code=engine.code or code_of(type(engine)),
        source=engine.source,
        **questions,
    )
    return _with_template_settings(record, model, engine, path, before)


def _with_template_settings(
    record: Record, model: Model, engine: Engine, path: Path, before: Record | None
) -> Record:
    """Records the date that the chat template prints, and the switches that the engine adds.

    They are those of an earlier start or of another shard of the same run, or else new ones.
    """
    own_date, own_chat = record.decoding.get("date"), record.decoding.get("chat", {})

    def completed(date: str | None, switches: Mapping[str, Any]) -> Record:
        date, chat = own_date or date, {**switches, **own_chat}
        added = ({"date": date} if date else {}) | ({"chat": chat} if chat else {})
        return record.model_copy(update={"decoding": record.decoding | added})

    with suppress(JournalError):
        files = journal_files(joined_path(path))
        others = (read_answers(file)[0] for file in files if file != path and file.exists())
        for earlier in chain([before] if before else [], others):
            switches = model.added_switches(earlier.decoding.get("chat", {}))
            again = completed(earlier.decoding.get("date"), switches)
            # Only a start whose other settings are the same counts.
            if again.identity == earlier.identity:
                return again
    date = today() if own_date is None and engine.asks_for_date() else None
    return completed(date, engine.added_switches())
