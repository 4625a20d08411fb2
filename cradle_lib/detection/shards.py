"""Joins the shards of a run into one journal.

The joined journal has the same bytes as that of a process which asks one question after the other:
one header, and the lines in the order of the corpus. Only measurements differ (``started``,
``seconds``, and the cached tokens of a service). A process that runs many dialogues at the same
time writes the same lines in the order of the answers. The log-probabilities of the wave engine
depend in their last digits on the batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import Final

from cradle_lib import paths
from cradle_lib.detection.journal import each_line, last_record, lock_journal
from cradle_lib.detection.journal_lines import to_bytes
from cradle_lib.detection.journal_paths import parse_shard
from cradle_lib.detection.session import Prediction
from cradle_lib.errors import JournalError
from cradle_lib.files import replacing
from cradle_lib.record import Record

# Fields of a record that may differ between the machines of a run.
_CIRCUMSTANCES: Final = ("version", "commit", "dirty", "python", "platform", "packages", "proxy")


def join(
    shards: Sequence[Path], out: Path, *, dialogues: int, turns: Mapping[str, int] | None = None
) -> Record:
    """Joins the journals of all shards of a run; the shards are kept.

    Args:
        shards: The journals of all shards, in any order.
        out: The journal to write.
        dialogues: Number of dialogues of the corpus. The record of a run over all of them lists
            none.
        turns: User turns of each dialogue, to refuse a shard that is not finished.

    Returns:
        The record of the joined journal.

    Raises:
        JournalError: If a shard is missing, damaged, being written or not finished, stands twice,
            or belongs to another run or corpus; or ``out`` exists.
    """
    if out.exists():
        raise JournalError(f"{paths.shown(out)}: is there already. Move it away, or use it.")
    with ExitStack() as stack:
        out.parent.mkdir(parents=True, exist_ok=True)
        for path in dict.fromkeys([out, *filter(Path.exists, shards)]):
            stack.callback(lock_journal(path).release)
        parts = _in_order(shards)
        lines: list[tuple[int, str, int, bytes]] = []
        for index, (path, record) in enumerate(parts):
            answers = list(_answers(path, record))
            _require_finished(answers, path, record, turns or {})
            listed = enumerate(record.dialogues or ())
            places = {name: index + len(parts) * place for place, name in listed}
            for line, raw in answers:
                # Dialogues that the record does not list come last, as they stand in the shard.
                place = places.setdefault(line.dialogue, dialogues + len(places))
                lines.append((place, line.dialogue, line.turn, raw))
        # A stable sort: of two answers to one question the later one stays the later one.
        lines.sort(key=lambda line: line[:3])
        records = [record for _, record in parts]
        joined = _joined_record(records, dialogues)
        with replacing(out) as part, part.open("wb") as file:
            file.writelines(map(to_bytes, _headers(records, joined)))
            file.writelines(raw for *_, raw in lines)
            file.flush()
            os.fsync(file.fileno())
    return joined


def _require_finished(
    answers: Sequence[tuple[Prediction, bytes]],
    path: Path,
    record: Record,
    turns: Mapping[str, int],
) -> None:
    chosen = set(record.dialogues or ())
    answered = {(line.dialogue, line.turn) for line, _ in answers if line.dialogue in chosen}
    needed = sum(turns.get(name, 0) for name in chosen)
    if len(answered) < needed:
        raise JournalError(
            f"{paths.shown(path)}: shard {record.shard} answers {len(answered):,} of its "
            f"{needed:,} user turns. Finish it with `cradle infer --shard {record.shard}`."
        )


def _in_order(shards: Sequence[Path]) -> list[tuple[Path, Record]]:
    """Checks that these are the shards of one run; gives them in order, with their records."""
    if not shards:
        raise JournalError("no shard was named. Name all shards of a run.")
    records = [last_record(path) for path in shards]
    first, there = records[0], paths.shown(shards[0])
    found: dict[int, tuple[Path, Record]] = {}
    for path, record in zip(shards, records, strict=True):
        index, count = parse_shard(record.shard or "0/1")
        if record.shard is None:
            problem = "is no shard, but a run by itself."
        elif record.identity != first.identity:
            other = "; ".join(
                f"{name} is {here!r:.80}, there {there!r:.80}"
                for name, here, there in record.differences(first)
            )
            problem = (
                f"belongs to another run than {there}: {other}. "
                "Only the shards of one run can be joined."
            )
        elif record.corpus_fingerprint != first.corpus_fingerprint:
            problem = (
                f"was made for corpus {record.corpus} ({record.corpus_fingerprint}), {there} for "
                f"another version of it ({first.corpus_fingerprint}). Make the older one again."
            )
        elif count != parse_shard(str(first.shard))[1]:
            problem = (
                f"is shard {record.shard}, {there} is {first.shard}. Join those of one division."
            )
        elif index in found:
            same = paths.shown(found[index][0])
            problem = f"is shard {record.shard}, and so is {same}. Name each once."
        else:
            found[index] = path, record
            continue
        raise JournalError(f"{paths.shown(path)}: {problem}")
    if missing := [f"{index}/{count}" for index in range(count) if index not in found]:
        raise JournalError(
            f"shard {', '.join(missing)} is missing beside {there}. Make it with "
            "`cradle infer --shard`, or copy it there."
        )
    parts = [found[index] for index in range(count)]
    lists = [record.dialogues or [] for _, record in parts]
    sizes = [len(each) for each in lists]
    distinct = len(set[str]().union(*lists))
    if sizes != sorted(sizes, reverse=True) or sizes[0] - sizes[-1] > 1 or distinct < sum(sizes):
        raise JournalError(
            f"{there}: its shards are over different choices of dialogues "
            f"({', '.join(map(str, sizes))} of them). Make all with the same limit or --sample."
        )
    return parts


def _joined_record(parts: Sequence[Record], dialogues: int) -> Record:
    """Makes the record of the joined run."""
    chosen, agreed = (
        [
            name
            for row in zip_longest(*(getattr(record, field) or () for record in parts))
            for name in row
            if name is not None
        ]
        for field in ("dialogues", "agreed")
    )
    costs = [record.max_cost for record in parts]
    return parts[0].model_copy(
        update={
            "shard": None,
            "dialogues": None if len(chosen) in (0, dialogues) else chosen,
            "agreed": agreed if parts[0].agreed is not None else None,
            "max_cost": None if None in costs else sum(filter(None, costs)),
            "started": min(record.started for record in parts),
        }
    )


def _headers(parts: Sequence[Record], joined: Record) -> list[Record]:
    """Makes the header, and before it one for each other machine or version that answered."""
    headers = [joined]
    for part in parts[1:]:
        there = {name: getattr(part, name) for name in _CIRCUMSTANCES}
        other = joined.model_copy(update=there)
        if other not in headers:
            headers.insert(0, other)
    return headers


def _answers(path: Path, record: Record) -> Iterator[tuple[Prediction, bytes]]:
    """Gives the answers of a journal with their lines.

    Answers under other settings, all of which failed, are left out.
    """
    holds = False
    for line, raw in each_line(path):
        if isinstance(line, Record):
            holds = line.identity == record.identity
        elif holds:
            yield line, raw
