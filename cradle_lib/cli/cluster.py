"""A command as many tasks: the options of a cluster, and a run in shards that becomes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from cradle_lib import paths
from cradle_lib.cli.console import err
from cradle_lib.cli.run_bar import RunBar
from cradle_lib.cluster.places import Local, Place, Slurm
from cradle_lib.cluster.task import End, Task
from cradle_lib.cluster.watch import Standing, failures, lead
from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection import Outcome, Progress, load_predictions
from cradle_lib.detection.asking import require_consent
from cradle_lib.detection.journals.join import divide, join
from cradle_lib.detection.models.model import Model
from cradle_lib.errors import ClusterError, JournalError

ClusterOption = Annotated[
    str | None,
    typer.Option(help="slurm: as tasks of this cluster. local: as processes of this machine."),
]
ShardsOption = Annotated[
    int | None, typer.Option(min=1, help="With --cluster: into how many tasks the run is divided.")
]
GresOption = Annotated[
    str | None, typer.Option(help="With --cluster: what each task needs, such as gpu:1.")
]
PartitionOption = Annotated[str | None, typer.Option(help="With --cluster slurm: the partition.")]
AccountOption = Annotated[str | None, typer.Option(help="With --cluster slurm: who pays.")]
TimeOption = Annotated[
    str | None,
    typer.Option(help="With --cluster slurm: the limit of a task, after which it is repeated."),
]
SbatchOption = Annotated[
    list[str] | None,
    typer.Option(help="Any other option of sbatch, such as mem=64G; may be given several times."),
]
#: Options of the command that its tasks do not get.
_OURS: Final = frozenset(
    {
        *("cluster", "shards", "gres", "partition", "account", "time", "sbatch"),
        *("accelerate", "as_json", "yes"),
    }
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked of a cluster.

    Attributes:
        kind: ``slurm`` or ``local``.
        options: Those of ``sbatch``.
    """

    kind: str
    options: Mapping[str, str]

    def place(self, folder: Path, name: str) -> Place:
        """Makes the place where tasks run.

        Raises:
            ClusterError: If it is not there.
        """
        if self.kind == "slurm":
            return Slurm(folder / "logs", self.options, f"cradle-{name}")
        return Local(folder / "logs")

    @property
    def gpus(self) -> int:
        """GPUs of a task."""
        return _gpus(self.options.get("gres", ""))

    def environment(self, number: int) -> dict[str, str]:
        """Gives what a task finds set otherwise: on this machine, which GPUs it may see."""
        if self.kind == "slurm":
            return {}
        import os

        before = os.environ.get("CUDA_VISIBLE_DEVICES")
        each = self.gpus
        if not each:
            # The local executor hides the GPUs unless it is told otherwise.
            return {"CUDA_VISIBLE_DEVICES": before or ",".join(map(str, range(_visible())))}
        seen = before.split(",") if before else list(map(str, range(_visible())))
        if len(seen) < each:
            raise ClusterError(
                f"--gres gpu:{each}: this machine shows {len(seen)} GPUs. `cradle doctor` says "
                "what it sees."
            )
        own = [seen[(number * each + place) % len(seen)] for place in range(each)]
        return {"CUDA_VISIBLE_DEVICES": ",".join(own)}


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
    """Gives the command that was typed, as a task gets it.

    Args:
        context: The command's.
        **changed: Values by the names of its parameters, in place of those that were typed.
    """
    words = context.command_path.split()[1:]
    values = {**context.params, **changed}
    for parameter in context.command.params:
        name, value = str(parameter.name), values.get(str(parameter.name))
        if name in _OURS - changed.keys() or value is None or value is False:
            continue
        if value == parameter.get_default(context) and name not in changed:
            continue
        option = max(parameter.opts, key=len)
        if value is True:
            words.append(option)
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            words += [option, str(each)]
    return tuple(words)


def infer_shards(
    context: typer.Context,
    place: Wanted,
    shards: int,
    entry: Model,
    corpus: Corpus,
    chosen: Sequence[Dialogue],
    journal: Path,
    bar: RunBar,
    max_cost: float | None,
) -> None:
    """Runs a model as one task for each shard, and joins the shards.

    Args:
        context: That of ``cradle infer``.
        place: Where.
        shards: How many.
        entry: The model.
        corpus: The corpus.
        chosen: The dialogues that the run is over.
        journal: Where the one journal goes. One that is there is gone on with.
        bar: Shows how far it is.
        max_cost: Most dollars for all shards together.

    Raises:
        CradleError: If tasks can't run, or some of them failed; what was answered is kept.
    """
    total = sum(len(dialogue.user_turns) for dialogue in chosen)
    names = [f"{journal.stem}.shard-{index}-of-{shards}.jsonl" for index in range(shards)]
    files = [journal.with_name(name) for name in names]
    if journal.exists():
        if _is_finished(journal, corpus, chosen):
            bar.show(Progress(total, total, total))
            return
        divide(journal, files, [dialogue.id for dialogue in chosen])
    if entry.remote:
        require_consent(entry, f"{len(chosen)} dialogues of {corpus.name}", bar.agree)
    folder = journal.with_name(f".{journal.stem}.cluster")
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
            place.environment(index),
        )
        for index, file in enumerate(files)
    ]
    tally = Tally(files)
    stored = min(sum(map(tally, range(shards))), total)

    def show(standing: Standing) -> None:
        done = min(sum(map(tally, range(shards))), total)
        bar.show(Progress(done, total, stored), str(standing))

    show(Standing(0, shards, 0, 0))
    ends = carry_out(tasks, place, folder, journal.stem, tally, show)
    if told := failures(tasks, ends, folder):
        raise ClusterError(
            f"{'; '.join(told)}. What was answered is kept: the same command goes on."
        )
    turns = {dialogue.id: len(dialogue.user_turns) for dialogue in chosen}
    join(files, journal, dialogues=len(corpus), turns=turns)
    for file in files:
        file.unlink()
        file.with_name(f".{file.name}.lock").unlink(missing_ok=True)


def one_task(
    context: typer.Context,
    place: Wanted,
    folder: Path,
    further: Callable[[], int],
    launchers: Sequence[tuple[str, ...]] = ((),),
) -> None:
    """Runs a command elsewhere as one task after the other, each until it has ended well.

    Args:
        context: The command's.
        place: Where.
        folder: What the command makes; notes and logs go beside it.
        further: Says how far it has come: a count that grows.
        launchers: For each task the words that start it; see :class:`.Task`.

    Raises:
        ClusterError: If one fails; with its reason.
    """
    own = folder.absolute().parent / f".{folder.name}.cluster"
    words = words_of(context, yes=context.params.get("yes"))
    err.print(f"Logs, as long as it runs: {paths.shown(own)}-*", markup=False)
    for number, launcher in enumerate(launchers):
        tasks = [Task(f"{context.command.name}", words, place.environment(0), launcher)]
        notes = own.with_name(f"{own.name}-{number}")
        ends = carry_out(tasks, place, notes, folder.name, lambda _: further())
        if told := failures(tasks, ends, notes):
            raise ClusterError(f"{'; '.join(told)}. The same command goes on.")


def carry_out(
    tasks: Sequence[Task],
    place: Wanted,
    folder: Path,
    name: str,
    further: Callable[[int], int],
    report: Callable[[Standing], None] = lambda _: None,
) -> list[End]:
    """Leads tasks to their end, with what there is to say on standard error."""
    folder = folder.absolute()

    def notice(sentence: str) -> None:
        err.print(sentence, markup=False)

    where = place.place(folder, name)
    return lead(tasks, where, folder, further=further, report=report, notice=notice)


def _is_finished(journal: Path, corpus: Corpus, chosen: Sequence[Dialogue]) -> bool:
    with suppress(JournalError):
        made = load_predictions(journal, corpus, partial=True)
        covered = {dialogue.id for dialogue in made.corpus}
        complete = covered >= {dialogue.id for dialogue in chosen}
        return complete and not made.outcome_counts[Outcome.FAILED]
    return False


class Tally:
    """Counts the answers in journals that grow: what was counted is not read again.

    Args:
        files: The journals, which need not exist yet.
    """

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


def _gpus(gres: str) -> int:
    """Reads ``gpu:2`` and ``gpu:a100:2``; 0 if no GPU is asked for."""
    kind, *rest = gres.split(":")
    return (int(rest[-1]) if rest and rest[-1].isdecimal() else 1) if kind == "gpu" else 0


def _visible() -> int:
    try:
        import torch
    except ImportError:
        return 0
    return torch.cuda.device_count()
