"""Shards of a run become the one journal that a single process would have written.

The joined journal has the same bytes as that of a process which asks one question after the other:
one header, and the lines in the order of the corpus, except for what is measured (``started``,
``seconds``, and for a service the tokens that it found in its cache). A process that leads many
dialogues at once writes the same lines in the order in which answers came; the log-probabilities
that the wave engine stores differ in their last digits, by which dialogues advanced together.

No run is held in memory: lines are sorted in pieces, and the pieces merged.
"""

from __future__ import annotations

import heapq
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO, Final

from cradle_lib import paths
from cradle_lib.detection.journals.divide import answers_and_lines, header_line, last_record
from cradle_lib.detection.journals.journal import lock_journal
from cradle_lib.detection.journals.places import parse_shard
from cradle_lib.errors import JournalError
from cradle_lib.files import replacing
from cradle_lib.record import Record

# Lines that are sorted in memory, some fifty million bytes.
_TOGETHER: Final = 100_000
# Place of what is in no list of dialogues.
_LAST: Final = 1 << 60
# What says where and with which programs a part was made, and may differ between machines.
_CIRCUMSTANCES: Final = ("version", "commit", "dirty", "python", "platform", "packages", "proxy")

# Place of the dialogue in the whole run, turn, number of the line in its file; and the line.
_Line = tuple[int, int, int, bytes]


def join(
    shards: Sequence[Path], out: Path, *, dialogues: int, turns: Mapping[str, int] | None = None
) -> Record:
    """Joins the journals of all shards of a run.

    Args:
        shards: The journals, in any order. They stay as they are.
        out: The journal to write; it must not exist.
        dialogues: Dialogues of the whole corpus: a run over all of them lists none.
        turns: User turns of each dialogue, to refuse a shard that is not finished; ``None`` if
            that has been seen to.

    Returns:
        The record of the whole.

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
        records = [last_record(path) for path in shards]
        order = _in_order(shards, records)
        files, parts = [shards[i] for i in order], [records[i] for i in order]
        sources: list[Iterator[_Line]] = []
        for index, (path, record) in enumerate(zip(files, parts, strict=True)):
            own = enumerate(record.dialogues or ())
            places = {name: index + len(parts) * place for place, name in own}
            held = _TOGETHER // len(parts)
            sources += _pieces(path, record, places, out.parent, stack, held)
        whole = _whole(parts, dialogues)
        with replacing(out) as part, part.open("wb") as file:
            for record in _headers(parts, whole):
                file.write(header_line(record))
            lines = _counted(heapq.merge(*sources), answered := [0] * len(parts))
            file.writelines(lines)
            if turns is not None:
                _require_finished(files, parts, turns, answered)
            file.flush()
            os.fsync(file.fileno())
    return whole


def _in_order(shards: Sequence[Path], records: Sequence[Record]) -> list[int]:
    """Sees to it that these are the shards of one run; gives their order."""
    if not shards:
        raise JournalError("no shard was named. Name all shards of a run.")
    first, found = records[0], dict[int, int]()
    for position, (path, record) in enumerate(zip(shards, records, strict=True)):
        if record.shard is None:
            raise JournalError(f"{paths.shown(path)}: is no shard, but a run by itself.")
        index, count = parse_shard(record.shard)
        if record.identity != first.identity:
            other = "; ".join(
                f"{name} is {here!r:.80}, there {there!r:.80}"
                for name, here, there in record.differences(first)
            )
            raise JournalError(
                f"{paths.shown(path)}: belongs to another run than {paths.shown(shards[0])}: "
                f"{other}. Only the shards of one run can be joined."
            )
        if record.corpus_fingerprint != first.corpus_fingerprint:
            raise JournalError(
                f"{paths.shown(path)}: was made for corpus {record.corpus} "
                f"({record.corpus_fingerprint}), {paths.shown(shards[0])} for another version of "
                f"it ({first.corpus_fingerprint}). Make the older one again."
            )
        if count != parse_shard(str(first.shard))[1]:
            raise JournalError(
                f"{paths.shown(path)}: is shard {record.shard}, {paths.shown(shards[0])} is "
                f"{first.shard}. Join those of one division."
            )
        if index in found:
            raise JournalError(
                f"{paths.shown(path)}: is shard {record.shard}, and so is "
                f"{paths.shown(shards[found[index]])}. Name each once."
            )
        found[index] = position
    missing = [f"{index}/{count}" for index in range(count) if index not in found]
    if missing:
        raise JournalError(
            f"shard {', '.join(missing)} is missing beside {paths.shown(shards[0])}. Make it with "
            "`cradle infer --shard`, or copy it there."
        )
    order = [found[index] for index in range(count)]
    lists = [records[position].dialogues or [] for position in order]
    sizes = [len(each) for each in lists]
    distinct = len(set[str]().union(*lists))
    if sizes != sorted(sizes, reverse=True) or sizes[0] - sizes[-1] > 1 or distinct < sum(sizes):
        raise JournalError(
            f"{paths.shown(shards[0])}: its shards are over different choices of dialogues "
            f"({', '.join(map(str, sizes))} of them). Make all with the same --limit or --sample."
        )
    return order


def _whole(parts: Sequence[Record], dialogues: int) -> Record:
    """Gives the record of all parts together."""
    chosen = _interleaved(parts, "dialogues")
    agreed = _interleaved(parts, "agreed")
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


def _interleaved(parts: Sequence[Record], field: str) -> list[str]:
    lists: Iterable[tuple[str | None, ...]] = zip_longest(
        *(getattr(record, field) or () for record in parts)
    )
    return [name for row in lists for name in row if name is not None]


def _headers(parts: Sequence[Record], whole: Record) -> list[Record]:
    """One header, and before it one for every other machine or version that answered."""
    headers = [whole]
    for part in parts[1:]:
        there = {name: getattr(part, name) for name in _CIRCUMSTANCES}
        other = whole.model_copy(update=there)
        if other not in headers:
            headers.insert(0, other)
    return headers


def _pieces(
    path: Path,
    record: Record,
    places: Mapping[str, int],
    folder: Path,
    stack: ExitStack,
    held: int,
) -> list[Iterator[_Line]]:
    """Sorts a shard's lines, in pieces that lie in files without a name; few stay in memory.

    Args:
        path: The shard.
        record: Its record.
        places: Place of each dialogue in the whole run.
        folder: Where the files are.
        stack: Closes them.
        held: Most lines of the shard that stay in memory.

    Returns:
        The pieces, each in order.
    """
    pieces: list[Iterator[_Line]] = []
    together: list[_Line] = []
    others: dict[str, int] = {}

    def put_away() -> None:
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # the stack closes it
        stack.callback(file.close)
        together.sort()
        file.writelines(b"%d %d %d %b" % each for each in together)
        together.clear()
        pieces.append(_read_back(file))

    for number, (line, raw) in enumerate(answers_and_lines(path, record)):
        place = places.get(line.dialogue)
        if place is None:
            # Of dialogues that it is no longer over, or of all, if it lists none.
            place = others.setdefault(line.dialogue, _LAST + len(others))
        together.append((place, line.turn, number, raw))
        if len(together) == _TOGETHER:
            put_away()
    if len(together) > held:
        put_away()
    return [*pieces, iter(sorted(together))]


def _counted(lines: Iterable[_Line], answered: list[int]) -> Iterator[bytes]:
    """Gives the lines on, and counts the turns of each shard."""
    before = None
    for place, turn, _, raw in lines:
        if (place, turn) != before and place < _LAST:
            answered[place % len(answered)] += 1
        before = (place, turn)
        yield raw


def _require_finished(
    shards: Sequence[Path],
    parts: Sequence[Record],
    turns: Mapping[str, int],
    answered: Sequence[int],
) -> None:
    for path, part, done in zip(shards, parts, answered, strict=True):
        needed = sum(turns.get(name, 0) for name in part.dialogues or ())
        if done < needed:
            raise JournalError(
                f"{paths.shown(path)}: shard {part.shard} answers {done:,} of its {needed:,} "
                f"user turns. Finish it with `cradle infer --shard {part.shard}`."
            )


def _read_back(file: BinaryIO) -> Iterator[_Line]:
    file.seek(0)
    for line in file:
        place, turn, number, raw = line.split(b" ", 3)
        yield int(place), int(turn), int(number), raw
