"""``cradle infer --cluster``: a run as one job for each shard, joined into one journal."""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Any, Final

import typer

from cradle_extras.cluster.jobs import End, Local, Slurm
from cradle_lib import paths
from cradle_lib.cli.console import err
from cradle_lib.cli.run_bar import RunBar
from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection import Outcome, Progress, load_predictions
from cradle_lib.detection.journal import last_record
from cradle_lib.detection.model import Model
from cradle_lib.detection.run import require_consent
from cradle_lib.detection.shards import divide, join
from cradle_lib.errors import CradleError, EngineError, JournalError
from cradle_lib.prompts import load_template
from cradle_lib.record import History

#: Options of the command that its jobs do not get.
_OURS: Final = frozenset(("cluster", "shards", "sbatch", "as_json", "yes"))
# Seconds between two queries of the jobs' states: few at first, so that short jobs end soon.
_FIRST, _LONGEST = 0.2, 10.0


def open_cluster(kind: str, sbatch: Sequence[str], folder: Path, journal: Path) -> Slurm | Local:
    """Makes the cluster that runs the jobs of a journal.

    Args:
        kind: ``slurm`` or ``local``.
        sbatch: Options of ``sbatch``, each as ``name=value``.
        folder: Folder for scripts and logs, which is made.
        journal: The journal, from whose path the jobs are named.

    Raises:
        EngineError: If there is no such kind, an option is malformed or of another kind, or the
            cluster can't be used.
    """
    options: dict[str, str] = {}
    for pair in sbatch:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip("-"):
            raise EngineError(f"--sbatch {pair}: expected name=value, such as mem=64G.")
        options[name.strip("-")] = value
    if kind not in ("slurm", "local"):
        raise EngineError(f"no cluster {kind!r}. Choose slurm or local.")
    if kind == "local" and (odd := options.keys() - {"gres"}):
        raise EngineError(
            f"--sbatch {min(odd)} is SLURM's: processes of this machine have no such thing."
        )
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "slurm":
        place = hashlib.sha256(str(journal.absolute()).encode()).hexdigest()[:8]
        name = re.sub(r"[^\w.-]", "-", journal.stem)
        return Slurm(folder, f"cradle-{name}-{place}", options)
    # Such as gpu:2 or gpu:a100:2.
    resource, *rest = options.get("gres", "").split(":")
    number = int(rest[-1]) if rest and rest[-1].isdecimal() else 1
    return Local(folder, number if resource == "gpu" else 0)


def words_of(context: typer.Context, **changed: Any) -> list[str]:
    """Gives the command that was typed, with some parameters changed, as a job gets it."""
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
    return words


def infer_shards(
    context: typer.Context,
    entry: Model,
    corpus: Corpus,
    history: History,
    chosen: Sequence[Dialogue],
    journal: Path,
    bar: RunBar,
) -> None:
    """Runs a model as one job for each shard, and joins the shards into one journal.

    An existing journal is continued: it is divided into shards first. If jobs fail or are
    interrupted, the shards keep what was answered, and the next start continues them.

    Raises:
        EngineError: If jobs can't be submitted, or one fails.
    """
    shards: int = context.params["shards"]
    turns = {dialogue.id: len(dialogue.user_turns) for dialogue in chosen}
    total = sum(turns.values())
    if journal.exists() and _is_finished(journal, corpus, chosen):
        bar.show(Progress(total, total, total))
        return
    # Everything that can be refused is refused before a journal is divided.
    folder = journal.absolute().with_name(f".{journal.stem}.cluster")
    sbatch = context.params["sbatch"] or ()
    cluster = open_cluster(context.params["cluster"], sbatch, folder, journal)
    if entry.remote:
        require_consent(entry, f"{len(chosen)} dialogues of {corpus.name}", bar.agree)
    names = [f"{journal.stem}.shard-{index}-of-{shards}.jsonl" for index in range(shards)]
    files = [journal.with_name(name) for name in names]
    others = sorted(set(journal.parent.glob(f"{escape(journal.stem)}.shard-*.jsonl")) - set(files))
    if others:
        count = others[0].stem.rpartition("-of-")[2]
        raise EngineError(
            f"{paths.shown(others[0])}: is a shard of an earlier start, whose answers would be "
            f"asked again. Finish it with --shards {count}, or move its shards away."
        )
    if journal.exists():
        _require_same(journal, entry, corpus, history)
        divide(journal, files, list(turns))
    max_cost = context.params["max_cost"]
    commands = {
        index: words_of(
            context,
            shard=f"{index}/{shards}",
            folder=file.absolute(),
            yes=entry.remote,
            max_cost=None if max_cost is None else max_cost / shards,
        )
        for index, file in enumerate(files)
    }
    stored = min(sum(map(count_answers, files)), total)

    def show() -> None:
        bar.show(Progress(min(sum(map(count_answers, files)), total), total, stored))

    failed = run_jobs(cluster, commands, show)
    if failed:
        raise EngineError(
            f"{'; '.join(failed)}. Logs: {paths.shown(folder)}. The answers so far are kept: "
            "the same command goes on."
        )
    join(files, journal, dialogues=len(corpus), turns=turns)
    for file in files:
        file.unlink()
        file.with_name(f".{file.name}.lock").unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def run_jobs(cluster: Slurm | Local, commands: Mapping[int, Sequence[str]], show: Any) -> list[str]:
    """Runs jobs to their ends. A job that is ended from outside is submitted once more.

    If anything else happens, such as Ctrl-C, all jobs are ended; calls in flight are awaited.

    Returns:
        A sentence about each job that failed, with its reason.
    """
    repeated: set[int] = set()
    done: dict[int, End] = {}
    try:
        cluster.submit(commands)
        seconds = _FIRST
        while len(done) < len(commands):
            show()
            time.sleep(seconds)
            seconds = min(1.3 * seconds, _LONGEST)
            for index, end in cluster.ended().items():
                if index in done:
                    continue
                if end.status is None and not end.cancelled and index not in repeated:
                    repeated.add(index)
                    err.print(f"Shard {index} died ({end.reason}), and is submitted again.")
                    cluster.submit({index: commands[index]})
                else:
                    done[index] = end
        show()
    except BaseException:
        _end_jobs(cluster)
        raise
    failed: dict[str, list[str]] = {}
    for index, end in sorted(done.items()):
        if end.status not in (0, 1):
            reason = end.reason if end.status is not None else f"died ({end.reason})"
            failed.setdefault(reason, []).append(f"{index}/{len(commands)}")
    return [f"shard {', '.join(names)}: {reason}" for reason, names in failed.items()]


def _end_jobs(cluster: Slurm | Local) -> None:
    if not cluster.jobs:
        return
    try:
        cluster.interrupt()
        err.print("Ending the shards, which wait for calls in flight. Another Ctrl-C kills them.")
        while len(cluster.ended()) < len(cluster.jobs):
            time.sleep(_FIRST)
    except (KeyboardInterrupt, CradleError):
        cluster.kill()


def count_answers(journal: Path) -> int:
    """Counts the complete lines of answers in a journal, without those that failed."""
    if not journal.exists():
        return 0
    lines = journal.read_bytes().split(b"\n")[:-1]
    return sum(b'"outcome": ' in line and b'"outcome": "failed"' not in line for line in lines)


def _require_same(journal: Path, entry: Model, corpus: Corpus, history: History) -> None:
    """Refuses to divide the journal of another run."""
    before = last_record(journal)
    decoding = entry.decoding.settings if entry.decoding else {}
    if decoding.get("from_checkpoint"):
        # Its settings are added by those who have the files: the tasks.
        decoding = before.decoding | decoding
    # A chat template that prints the date goes on with the recorded one.
    dated = {name: value for name, value in before.decoding.items() if name == "date"}
    now = {
        "model": entry.id,
        "engine": entry.engine,
        "weights": entry.weights,
        "prompt_hash": load_template(entry.prompt).hash,
        "decoding": dated | decoding,
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
