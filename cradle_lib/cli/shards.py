"""A run in shards, as tasks elsewhere, that becomes one journal."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import typer

from cradle_lib import paths
from cradle_lib.cli.cluster import Wanted, carry_out, words_of
from cradle_lib.cli.run_bar import RunBar
from cradle_lib.cluster.task import Task
from cradle_lib.cluster.watch import Standing, failures
from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection import Outcome, Progress, load_predictions
from cradle_lib.detection.asking import require_consent
from cradle_lib.detection.journals.journal import last_record
from cradle_lib.detection.journals.shards import divide, join
from cradle_lib.detection.models.model import Model
from cradle_lib.errors import ClusterError, JournalError
from cradle_lib.prompts import load_template
from cradle_lib.record import History, Record


def infer_shards(
    context: typer.Context,
    place: Wanted,
    shards: int,
    entry: Model,
    corpus: Corpus,
    history: History,
    chosen: Sequence[Dialogue],
    journal: Path,
    bar: RunBar,
    max_cost: float | None,
) -> None:
    """Runs a model as one task for each shard, and joins the shards into one journal.

    A journal that is there is gone on with. If tasks fail, what was answered is kept.
    """
    total = sum(len(dialogue.user_turns) for dialogue in chosen)
    names = [f"{journal.stem}.shard-{index}-of-{shards}.jsonl" for index in range(shards)]
    files = [journal.with_name(name) for name in names]
    if journal.exists() and _is_finished(journal, corpus, chosen):
        bar.show(Progress(total, total, total))
        return
    # What can be refused is refused before a journal is taken to pieces.
    folder = journal.absolute().with_name(f".{journal.stem}.cluster")
    where = place.place(folder, journal.stem)
    surroundings = [place.environment(index) for index in range(shards)]
    if entry.remote:
        require_consent(entry, f"{len(chosen)} dialogues of {corpus.name}", bar.agree)
    if journal.exists():
        _require_same(last_record(journal), entry, corpus, history, journal)
        divide(journal, files, [dialogue.id for dialogue in chosen])
    tasks = [
        Task(
            f"shard {index}/{shards}",
            words_of(
                context,
                shard=f"{index}/{shards}",
                folder=file.absolute(),
                yes=entry.remote,
                max_cost=None if max_cost is None else max_cost / shards,
            ),
            surroundings[index],
        )
        for index, file in enumerate(files)
    ]
    tally = Tally(files)
    stored = min(sum(map(tally, range(shards))), total)

    def show(standing: Standing) -> None:
        done = min(sum(map(tally, range(shards))), total)
        bar.show(Progress(done, total, stored), str(standing))

    show(Standing(0, shards, 0, 0))
    ends = carry_out(tasks, where, folder, tally, show)
    if told := failures(tasks, ends, folder):
        raise ClusterError(
            f"{'; '.join(told)}. What was answered is kept: the same command goes on."
        )
    turns = {dialogue.id: len(dialogue.user_turns) for dialogue in chosen}
    join(files, journal, dialogues=len(corpus), turns=turns)
    for file in files:
        file.unlink()
        file.with_name(f".{file.name}.lock").unlink(missing_ok=True)


class Tally:
    """Counts the answers in journals that grow: what was counted is not read again."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files
        self._read, self._counts = [0] * len(files), [0] * len(files)

    def __call__(self, number: int) -> int:
        """Counts the answers of one, those that failed left out."""
        with suppress(OSError), self._files[number].open("rb") as file:
            file.seek(self._read[number])
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read[number] += len(line)
                answer = not line.startswith(b'{"record"') and b'"outcome": "failed"' not in line
                self._counts[number] += answer
        return self._counts[number]


def _require_same(
    before: Record, entry: Model, corpus: Corpus, history: History, journal: Path
) -> None:
    """Refuses to divide the journal of another run, which would be in pieces for nothing."""
    now = {
        "model": entry.id,
        "engine": entry.engine,
        "weights": entry.weights,
        "prompt_hash": load_template(entry.prompt).hash,
        "decoding": entry.decoding.settings if entry.decoding else {},
        "history": history,
        "corpus": corpus.name,
    }
    other = [name for name, value in now.items() if getattr(before, name) != value]
    version = before.corpus_fingerprint != corpus.fingerprint
    if version and before.is_of_another_file(corpus.file_key):
        other.append("corpus file")
    if other:
        raise JournalError(
            f"{paths.shown(journal)}: this journal belongs to another run, with another "
            f"{', '.join(other)}. Choose another place for this run, or move the file away."
        )


def _is_finished(journal: Path, corpus: Corpus, chosen: Sequence[Dialogue]) -> bool:
    with suppress(JournalError):
        made = load_predictions(journal, corpus, partial=True)
        covered = {dialogue.id for dialogue in made.corpus}
        complete = covered >= {dialogue.id for dialogue in chosen}
        return complete and not made.outcome_counts[Outcome.FAILED]
    return False
