"""A journal becomes shards that go on where it was; and what its parts share to be read by."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import tee
from pathlib import Path
from typing import Final

from cradle_lib import paths
from cradle_lib.detection.journals.journal import lock_journal, open_journal
from cradle_lib.detection.journals.lines import read_lines, whole_lines
from cradle_lib.detection.session import Prediction
from cradle_lib.errors import JournalError
from cradle_lib.files import replacing
from cradle_lib.record import Record

_HEADER: Final = b'{"record": '


def divide(journal: Path, shards: Sequence[Path], dialogues: Sequence[str]) -> None:
    """Divides a journal into shards, which then take its place, so that they can go on.

    Args:
        journal: The journal; it is removed when the shards are written.
        shards: The journals to write; none of them may exist.
        dialogues: Ids of the dialogues that the run is to be over, in the order of the corpus.

    Raises:
        JournalError: If the journal can't be read or is being written, or a shard exists.
    """
    if there := [path for path in shards if path.exists()]:
        raise JournalError(
            f"{paths.shown(journal)}: is there, and so is {paths.shown(there[0])}, a part of the "
            "same run. Move away what you don't want."
        )
    count = len(shards)
    of = {name: place % count for place, name in enumerate(dialogues)}
    with ExitStack() as stack:
        stack.callback(lock_journal(journal).release)
        record = last_record(journal)
        files = [
            stack.enter_context(stack.enter_context(replacing(path)).open("wb")) for path in shards
        ]
        for index, file in enumerate(files):
            own = list(dialogues[index::count])
            known = set(record.agreed or ())
            part = record.model_copy(
                update={
                    "shard": f"{index}/{count}",
                    "dialogues": own,
                    "agreed": record.agreed and [name for name in own if name in known],
                    "max_cost": record.max_cost and record.max_cost / count,
                }
            )
            file.write(header_line(part))
        for line, raw in answers_and_lines(journal, record):
            # What the run is no longer over was answered all the same, and is kept.
            files[of.get(line.dialogue, 0)].write(raw)
        # All of them are whole before one takes its place.
        for file in files:
            file.flush()
            os.fsync(file.fileno())
    journal.unlink()


def last_record(path: Path) -> Record:
    """Reads the header that holds, and no answer.

    Raises:
        JournalError: If there is none.
    """
    header = None
    with open_journal(path) as file:
        for raw in whole_lines(file, path):
            header = raw if raw.startswith(_HEADER) or header is None else header
    for record in read_lines([header] if header else [], path):
        assert isinstance(record, Record)
        return record
    raise JournalError(f"{paths.shown(path)}: holds no header. Make the shard again.")


def answers_and_lines(path: Path, record: Record) -> Iterator[tuple[Prediction, bytes]]:
    """Yields the answers that hold, and each one's own line.

    Answers under other settings, which stand only where all of them failed, are left out.
    """
    with open_journal(path) as file:
        raws, lines = tee(whole_lines(file, path))
        holds = False
        for raw, line in zip(raws, read_lines(lines, path), strict=True):
            if isinstance(line, Record):
                holds = line.identity == record.identity
            elif holds:
                yield line, raw


def header_line(record: Record) -> bytes:
    """Gives the header of a journal, with its line break."""
    return (
        json.dumps({"record": record.model_dump(), "identity": record.identity}) + "\n"
    ).encode()
