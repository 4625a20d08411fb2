"""``cradle cluster``: a run as one job for each shard, joined into one journal."""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from cradle_extras.cluster.jobs import End, Local, Slurm
from cradle_lib import paths
from cradle_lib.cli import options as opt
from cradle_lib.cli.commands.runs import infer, report_run
from cradle_lib.cli.console import err
from cradle_lib.cli.run_bar import RunBar
from cradle_lib.corpus import Corpus, Dialogue, load_corpus
from cradle_lib.detection import Outcome, Progress, journal_path, load_predictions
from cradle_lib.detection.api.money import longest_prompts
from cradle_lib.detection.run import require_consent
from cradle_lib.detection.selection import choose_dialogues
from cradle_lib.detection.shards import join
from cradle_lib.errors import CradleError, EngineError, JournalError
from cradle_lib.prompts import load_template

# Seconds between two queries of the jobs' states: few at first, so that short jobs end soon.
_FIRST, _LONGEST = 0.2, 10.0
#: Options of `cradle infer` that the jobs get from here.
_OURS: Final = ("--shard",)

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command("cluster", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def cluster(
    context: typer.Context,
    kind: Annotated[
        str, typer.Argument(help="slurm: jobs on this cluster. local: processes on this machine.")
    ],
    shards: Annotated[int, typer.Option(min=1, help="Number of jobs.")],
    sbatch: Annotated[
        list[str] | None,
        typer.Option(
            help="What each job needs, as an option of sbatch such as gres=gpu:1, partition=gpu, "
            "time=8:00:00 or mem=64G; may be given several times."
        ),
    ] = None,
) -> None:
    """Run `cradle infer` as one job for each shard, and join the shards into one journal.

    All other options are those of `cradle infer`. Stopped or killed, the same command resumes; the
    shards keep their answers.
    """
    words = list(context.args)
    if odd := [word for word in words if word.partition("=")[0] in _OURS]:
        raise EngineError(f"{odd[0]} is set for each job. Leave it out.")
    given = _parse(words)
    settings = opt.run_settings(given["model"], given["given"])
    corpus = load_corpus(given["corpus"], given["split"])
    chosen = choose_dialogues(corpus, settings.limit, given["sample"])
    journal = given["folder"]
    if journal.suffix != ".jsonl":
        journal = journal_path(settings.model, corpus, settings.history, out=journal)
    with RunBar(settings.model.name, "turns", yes=given["yes"]) as bar:
        if journal.exists():
            _require_finished(journal, corpus, chosen)
            turns = sum(len(dialogue.user_turns) for dialogue in chosen)
            bar.show(Progress(turns, turns, turns))
        else:
            # Everything that can be refused is refused before a job is submitted.
            folder = journal.absolute().with_name(f".{journal.stem}.cluster")
            machines = open_cluster(kind, sbatch or (), folder, journal)
            if settings.model.remote:
                template = load_template(settings.model.prompt)
                sizes = longest_prompts(chosen, template, settings.history)
                what = f"{len(chosen)} dialogues of {corpus.name}"
                require_consent(settings.model, what, sizes.values(), bar.agree)
            words += ["--yes"] if settings.model.remote else []
            if given["max_cost"] is not None:
                words += ["--max-cost", str(given["max_cost"] / shards)]
            _run_shards(machines, words, shards, folder, journal, corpus, chosen, bar)
    report_run(settings, corpus, journal, sample=given["sample"], as_json=given["as_json"])


def _parse(words: Sequence[str]) -> dict[str, Any]:
    """Reads the options of ``cradle infer``; a mistake in them ends the command."""
    reader = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
    reader.command("infer")(infer)
    command = typer.main.get_command(reader)
    return command.make_context("cradle cluster", list(words)).params


def _require_finished(journal: Path, corpus: Corpus, chosen: Sequence[Dialogue]) -> None:
    with suppress(JournalError):
        made = load_predictions(journal, corpus, partial=True)
        covered = {dialogue.id for dialogue in made.corpus}
        complete = covered >= {dialogue.id for dialogue in chosen}
        if complete and not made.outcome_counts[Outcome.FAILED]:
            return
    raise JournalError(
        f"{paths.shown(journal)}: is there, and is not this run in full. Finish it with `cradle "
        "infer`, or move it away."
    )


def _run_shards(
    machines: Slurm | Local,
    words: Sequence[str],
    shards: int,
    folder: Path,
    journal: Path,
    corpus: Corpus,
    chosen: Sequence[Dialogue],
    bar: RunBar,
) -> None:
    """Runs one job for each shard, and joins the shards.

    If jobs fail or are interrupted, the shards keep what was answered, and the next start
    continues them.

    Raises:
        EngineError: If jobs can't be submitted, or one fails.
    """
    turns = {dialogue.id: len(dialogue.user_turns) for dialogue in chosen}
    total = sum(turns.values())
    names = [f"{journal.stem}.shard-{index}-of-{shards}.jsonl" for index in range(shards)]
    files = [journal.with_name(name) for name in names]
    others = sorted(set(journal.parent.glob(f"{escape(journal.stem)}.shard-*.jsonl")) - set(files))
    if others:
        count = others[0].stem.rpartition("-of-")[2]
        raise EngineError(
            f"{paths.shown(others[0])}: is a shard of an earlier start, whose answers would be "
            f"asked again. Finish it with --shards {count}, or move its shards away."
        )
    commands = {
        index: ["infer", *words, "--shard", f"{index}/{shards}", "--out", str(file.absolute())]
        for index, file in enumerate(files)
    }
    stored = min(sum(map(count_answers, files)), total)

    def show() -> None:
        bar.show(Progress(min(sum(map(count_answers, files)), total), total, stored))

    failed = run_jobs(machines, commands, show)
    if failed:
        raise EngineError(
            f"{'; '.join(failed)}. Logs: {paths.shown(folder)}. The answers so far are kept: "
            "the same command resumes."
        )
    join(files, journal, dialogues=len(corpus), turns=turns)
    for file in files:
        file.unlink()
        file.with_name(f".{file.name}.lock").unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


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
