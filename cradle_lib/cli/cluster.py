"""A command as tasks elsewhere: the options that say where, and what each task is told."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer

from cradle_lib import paths
from cradle_lib.cli.console import err
from cradle_lib.cluster.places import Local, Place, Slurm
from cradle_lib.cluster.task import End, Task
from cradle_lib.cluster.watch import Standing, failures, lead
from cradle_lib.detection.models.hosting import seen_gpus
from cradle_lib.errors import ClusterError

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
        seen = [name for name in before.split(",") if name] if before is not None else _visible()
        if len(seen) < self.gpus:
            raise ClusterError(
                f"--gres gpu:{self.gpus}: this machine shows {len(seen)} GPUs. `cradle doctor` "
                "says what it sees."
            )
        own = [seen[(number * self.gpus + place) % len(seen)] for place in range(self.gpus)]
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
        ends = carry_out(tasks, place.place(notes, folder.name), notes, lambda _: further())
        if told := failures(tasks, ends, notes):
            raise ClusterError(f"{'; '.join(told)}. The same command goes on.")


def carry_out(
    tasks: Sequence[Task],
    place: Place,
    folder: Path,
    further: Callable[[int], int],
    report: Callable[[Standing], None] = lambda _: None,
) -> list[End]:
    """Leads tasks to their end, with what there is to say on standard error."""
    return lead(tasks, place, folder, further=further, report=report, notice=err.print)


def _gpus(gres: str) -> int:
    """Reads ``gpu:2`` and ``gpu:a100:2``; 0 if no GPU is asked for."""
    kind, *rest = gres.split(":")
    return (int(rest[-1]) if rest and rest[-1].isdecimal() else 1) if kind == "gpu" else 0


def _visible() -> list[str]:
    return list(map(str, range(len(seen_gpus()))))
