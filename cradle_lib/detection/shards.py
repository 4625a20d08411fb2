"""Joins the shards of a run into one journal.

A shard is a journal about every n-th of the run's dialogues. The joined journal has the same bytes
as that of a process which asks one question after the other: one header, and the lines in the order
of the corpus. Only measurements differ (``started``, ``seconds``, and the cached tokens of a
service).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.journal import parse_shard, read_answers, to_bytes
from cradle_lib.errors import JournalError
from cradle_lib.files import replacing
from cradle_lib.record import Record


def join(shards: Sequence[Path], out: Path, corpus: Corpus) -> Record:
    """Joins the journals of all shards of a run; the shards are kept.

    Args:
        shards: The journals of all shards, in any order.
        out: The journal to write.
        corpus: The corpus that the run was over.

    Returns:
        The record of the joined journal.

    Raises:
        JournalError: If a shard is missing, named twice, damaged or not finished, or belongs to
            another run or corpus; or ``out`` exists.
    """
    if out.exists():
        raise JournalError(f"{paths.shown(out)}: is there already. Move it away, or use it.")
    parts = [read_answers(path) for path in shards]
    record = _joined_record(shards, [part for part, _ in parts], corpus)
    chosen = [d for d in corpus if record.dialogues is None or d.id in record.dialogues]
    places = {dialogue.id: place for place, dialogue in enumerate(chosen)}
    answers = [answer for _, lines in parts for answer in lines if answer.dialogue in places]
    asked = {(dialogue.id, turn.turn_id) for dialogue in chosen for turn in dialogue.user_turns}
    missing = asked - {(answer.dialogue, answer.turn) for answer in answers}
    if missing:
        raise JournalError(
            f"{len(missing):,} of {len(asked):,} user turns are not answered in the shards, the "
            f"first one in dialogue {min(missing)[0]}. Finish them with `cradle infer --shard`."
        )
    # A stable sort: of two answers to one question the later one stays the later one.
    answers.sort(key=lambda answer: (places[answer.dialogue], answer.turn))
    with replacing(out) as part:
        part.write_bytes(b"".join([to_bytes(record), *map(to_bytes, answers)]))
    return record


def _joined_record(shards: Sequence[Path], records: Sequence[Record], corpus: Corpus) -> Record:
    """Checks that the records are those of all shards of one run, and makes the run's record."""
    if not records:
        raise JournalError("no shard was named. Name all shards of a run.")
    first, everything = records[0], [dialogue.id for dialogue in corpus]
    for path, record in zip(shards, records, strict=True):
        if record.corpus_fingerprint != corpus.fingerprint:
            raise JournalError(
                f"{paths.shown(path)}: was made for {record.corpus} ({record.corpus_fingerprint}), "
                f"{corpus.name} is {corpus.fingerprint}. Name its corpus with --corpus."
            )
        if differences := first.differences(record):
            other = "; ".join(
                f"{name} is {here!r:.80}, there {there!r:.80}" for name, there, here in differences
            )
            raise JournalError(
                f"{paths.shown(path)}: belongs to another run than {paths.shown(shards[0])}: "
                f"{other}. Only the shards of one run can be joined."
            )
    count = parse_shard(first.shard or "0/1")[1]
    found = {
        str(record.shard): everything if record.dialogues is None else record.dialogues
        for record in records
    }
    wanted = [f"{index}/{count}" for index in range(count)]
    if sorted(found) != sorted(wanted) or len(records) != count:
        there = ", ".join(str(record.shard) for record in records)
        raise JournalError(
            f"{paths.shown(shards[0])}: expected the shards {', '.join(wanted)}, each once, found "
            f"{there}. Make the missing ones with `cradle infer --shard`."
        )
    named = set().union(*found.values())
    chosen = [name for name in everything if name in named]
    if any(chosen[index::count] != found[f"{index}/{count}"] for index in range(count)):
        raise JournalError(
            f"{paths.shown(shards[0])}: its shards are over different choices of dialogues. Make "
            "all with the same limit or --sample."
        )
    costs = [record.max_cost for record in records if record.max_cost is not None]
    return first.model_copy(
        update={
            "shard": None,
            "dialogues": None if chosen == everything else chosen,
            "max_cost": sum(costs) if len(costs) == count else None,
            "started": min(record.started for record in records),
        }
    )
