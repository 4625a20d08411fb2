"""A command as tasks elsewhere: where they run, what each is told, and a run in shards."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer

from cradle_lib import paths
from cradle_lib.cli.console import err
from cradle_lib.cli.run_bar import RunBar
from cradle_lib.cluster.places import Local, Place, Slurm
from cradle_lib.cluster.task import Task
from cradle_lib.cluster.watch import Standing, failures, lead
from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection import Outcome, Progress, load_predictions
from cradle_lib.detection.asking import require_consent
from cradle_lib.detection.journals.journal import last_record
from cradle_lib.detection.journals.shards import divide, join
from cradle_lib.detection.models.model import Model
from cradle_lib.errors import ClusterError, JournalError
from cradle_lib.prompts import load_template
from cradle_lib.record import History

#: Options of the command that its tasks do not get.
_OURS: Final = frozenset(
    {
        *("cluster", "shards", "gres", "partition", "account", "time", "sbatch"),
        *("accelerate", "as_json", "yes"),
    }
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked of a cluster, ``slurm`` or ``local``, with the options of ``sbatch``."""

    kind: str
    options: Mapping[str, str]

    def place(self, folder: Path, name: str) -> Place:
        """Makes the place where tasks run; a cluster that is not there is an error."""
        if self.kind == "slurm":
            return Slurm(folder / "logs", self.options, f"cradle-{name}")
        return Local(folder / "logs")

    @property
    def gpus(self) -> int:
        """GPUs of a task, from ``gpu:2`` or ``gpu:a100:2``."""
        kind, *rest = self.options.get("gres", "").split(":")
        return (int(rest[-1]) if rest and rest[-1].isdecimal() else 1) if kind == "gpu" else 0

    def environment(self, number: int) -> dict[str, str | None]:
        """Gives what a task finds set otherwise: on this machine, which GPUs it may see.

        Raises:
            ClusterError: If there are fewer than it needs.
        """
        if self.kind == "slurm":
            return {}
        before = os.environ.get("CUDA_VISIBLE_DEVICES")
        if not self.gpus:
            # The local executor hides the GPUs unless it is told otherwise.
            return {"CUDA_VISIBLE_DEVICES": before}
        numbers = map(str, range(gpu_count())) if before is None else before.split(",")
        seen = [name for name in numbers if name]
        if len(seen) < self.gpus:
            raise ClusterError(f"--gres gpu:{self.gpus}: this machine shows {len(seen)} GPUs.")
        own = [seen[(number * self.gpus + place) % len(seen)] for place in range(self.gpus)]
        return {"CUDA_VISIBLE_DEVICES": ",".join(own)}


def gpu_count() -> int:
    """Counts the GPUs that PyTorch sees on this machine; 0 without PyTorch."""
    try:
        import torch
    except ImportError:
        return 0
    return torch.cuda.device_count()


def wanted(
    cluster: str | None,
    gres: str | None,
    partition: str | None,
    account: str | None,
    time: str | None,
    sbatch: Sequence[str] | None,
) -> Wanted | None:
    """Reads the options of a cluster; ``None`` if none is asked for.

    Raises:
        ClusterError: If there is no such kind, an option is no pair, or belongs to another kind.
    """
    given = {"gres": gres, "partition": partition, "account": account, "time": time}
    options = {name: value for name, value in given.items() if value is not None}
    for pair in sbatch or ():
        name, equals, value = pair.partition("=")
        if not equals or not name.strip("-"):
            raise ClusterError(f"--sbatch {pair}: expected name=value, such as mem=64G.")
        options[name.strip("-")] = value
    if cluster is None:
        if options:
            raise ClusterError(f"--{next(iter(options))} says what tasks need: give --cluster too.")
        return None
    if cluster not in ("slurm", "local"):
        raise ClusterError(f"no cluster {cluster!r}. Choose slurm or local.")
    if cluster == "local" and (odd := options.keys() - {"gres"}):
        raise ClusterError(
            f"--{min(odd)} is SLURM's: processes of this machine have no such thing."
        )
    return Wanted(cluster, options)


def words_of(context: typer.Context, **changed: Any) -> tuple[str, ...]:
    """Gives the command that was typed, with some parameters changed, as a task gets it."""
    # The program itself may be several words, such as `python -m cradle_lib.cli`.
    words = context.command_path.removeprefix(context.find_root().command_path).split()
    values = {**context.params, **changed}
    for parameter in context.command.params:
        name, value = str(parameter.name), values.get(str(parameter.name))
        if name not in changed and (name in _OURS or value == parameter.get_default(context)):
            continue
        option = max(parameter.opts, key=len)
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            for each in value if isinstance(value, list | tuple) else [value]:
                words += [option, str(each)]
    return tuple(words)


def one_task(
    context: typer.Context,
    place: Wanted,
    folder: Path,
    further: Callable[[], int],
    launchers: Sequence[tuple[str, ...]] = ((),),
) -> None:
    """Runs a command elsewhere as one task after the other, each until it has ended well.

    Notes and logs go beside the ``folder`` that the command makes. ``further`` gives a count that
    grows as it comes further; ``launchers`` for each task the words that start it (:class:`.Task`).
    """
    own = folder.absolute().parent / f".{folder.name}.cluster"
    words = words_of(context, yes=context.params.get("yes"))
    err.print(f"Logs, as long as it runs: {paths.shown(own)}-*", markup=False)
    for number, launcher in enumerate(launchers):
        task = Task(f"{context.command.name}", words, place.environment(0), launcher)
        notes = own.with_name(f"{own.name}-{number}")
        _carry_out([task], place.place(notes, folder.name), notes, lambda _: further())


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
    turns = {dialogue.id: len(dialogue.user_turns) for dialogue in chosen}
    total = sum(turns.values())
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
        _require_same(journal, entry, corpus, history)
        divide(journal, files, list(turns))
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
    _carry_out(tasks, where, folder, tally, show)
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


def _carry_out(
    tasks: Sequence[Task],
    place: Place,
    folder: Path,
    further: Callable[[int], int],
    report: Callable[[Standing], None] = lambda _: None,
) -> None:
    """Leads tasks to their end, with what there is to say on standard error."""
    ends = lead(tasks, place, folder, further=further, report=report, notice=err.print)
    if told := failures(tasks, ends, folder):
        raise ClusterError(f"{'; '.join(told)}. What was made is kept: the same command goes on.")


def _require_same(journal: Path, entry: Model, corpus: Corpus, history: History) -> None:
    """Refuses to divide the journal of another run, which would be in pieces for nothing."""
    before = last_record(journal)
    decoding = entry.decoding.settings if entry.decoding else {}
    if decoding.get("from_checkpoint"):
        # Its settings are added by those who have the files: the tasks.
        decoding = before.decoding | decoding
    now = {
        "model": entry.id,
        "engine": entry.engine,
        "weights": entry.weights,
        "prompt_hash": load_template(entry.prompt).hash,
        "decoding": decoding,
        "history": history,
        "corpus": corpus.name,
    }
    other = [name for name, *_ in before.differences(before.model_copy(update=now))]
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
