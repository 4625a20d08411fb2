"""Joins the shards of a run into one journal.

A shard is a journal of every n-th dialogue of the run. The joined journal equals that of a single
process that asks one question after the other: one header, and the lines in the order of the
corpus. Only measurements differ (``started``, ``seconds``, and the cached tokens of a service).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.runs.journal import parse_shard, read_answers, to_bytes
from cradle_lib.errors import JournalError
from cradle_lib.files import replacing
from cradle_lib.record import Record


def join(shards: Sequence[Path], out: Path, corpus: Corpus) -> Record:
    """Joins the journals of all shards of a run; the shards are kept.

    Args:
        shards: The journals of all shards, in any order.
        out: The journal to write.
        corpus: The corpus of the run.

    Returns:
        The record of the joined journal.

    Raises:
        JournalError: If a shard is missing, damaged or unfinished, or belongs to another run or
            corpus, or if ``out`` exists.
    """
    if out.exists():
        raise JournalError(f"{paths.shown(out)}: already exists. Move it away, or use it.")
    shards = list(dict.fromkeys(shards))
    parts = [read_answers(path) for path in shards]
    records = [record for record, _ in parts]
    for path, part in zip(shards, records, strict=True):
        if part.corpus_fingerprint != corpus.fingerprint:
            raise JournalError(
                f"{paths.shown(path)}: was made for {part.corpus} ({part.corpus_fingerprint}), "
                f"{corpus.name} is {corpus.fingerprint}. Name its corpus with --corpus."
            )
    record = joined_record(shards, records, corpus)
    chosen = [d for d in corpus if record.dialogues is None or d.id in record.dialogues]
    places = {dialogue.id: place for place, dialogue in enumerate(chosen)}
    answers = [answer for _, lines in parts for answer in lines if answer.dialogue in places]
    asked = {(dialogue.id, turn.turn_id) for dialogue in chosen for turn in dialogue.user_turns}
    missing = asked - {(answer.dialogue, answer.turn) for answer in answers}
    if missing:
        raise JournalError(
            f"{len(missing):,} of {len(asked):,} user turns are not answered in the shards, the "
            f"first one in dialogue {min(missing)[0]}. Name all shards, and finish them with "
            "`cradle infer --shard`."
        )
    # The sort is stable: repeated answers to one question keep their order.
    answers.sort(key=lambda answer: (places[answer.dialogue], answer.turn))
    with replacing(out) as file:
        file.write_bytes(b"".join([to_bytes(record), *map(to_bytes, answers)]))
    return record


def joined_record(files: Sequence[Path], records: Sequence[Record], corpus: Corpus) -> Record:
    """Makes the record of a run from those of its journal or of its shards.

    Its ``dialogues`` are ``None`` if the run covers the corpus, or if they are unknown because a
    shard is missing.

    Raises:
        JournalError: If there is no record, or the records belong to different runs.
    """
    if not records:
        raise JournalError("no journal was named. Name at least one.")
    first = records[0]
    for path, record in zip(files, records, strict=True):
        if differences := record.differences(first):
            raise JournalError(
                f"{paths.shown(path)}: belongs to another run than {paths.shown(files[0])}: "
                f"{differences}. Only the shards of one run can be read together."
            )
    if len(records) == 1 and first.shard is None:
        return first
    shards = {record.shard for record in records if record.shard is not None}
    counts = {parse_shard(shard)[1] for shard in shards}
    if len(counts) > 1:
        raise JournalError(
            f"{paths.shown(files[0])}: there are shards i/n with different n "
            f"({', '.join(sorted(shards))}). Keep those of one n, and move the others away."
        )
    complete = all(len(shards) == count for count in counts)
    parts = [record.dialogues for record in records if record.dialogues is not None]
    named = set().union(*parts)
    chosen = [dialogue.id for dialogue in corpus if dialogue.id in named]
    known = complete and len(parts) == len(records) and len(chosen) < len(corpus)
    costs = [record.max_cost for record in records if record.max_cost is not None]
    return first.model_copy(
        update={
            "shard": None,
            "dialogues": chosen if known else None,
            "max_cost": sum(costs) if len(costs) == len(records) else None,
            "started": min(record.started for record in records),
            "fallback": next(filter(None, (record.fallback for record in records)), None),
        }
    )
