"""``cradle cluster``: a run as one job for each shard, joined into one journal."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from cradle_extras.cluster.jobs import Local, Slurm
from cradle_lib import paths
from cradle_lib.cli import options as opt
from cradle_lib.cli.commands.runs import infer, report_run
from cradle_lib.cli.console import err
from cradle_lib.cli.run_bar import RunBar
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import Progress
from cradle_lib.detection.runs.consent import require_consent
from cradle_lib.detection.runs.costs import prompt_sizes
from cradle_lib.detection.runs.journal import journal_files, shard_path
from cradle_lib.detection.runs.matching import run_path
from cradle_lib.detection.runs.selection import choose_dialogues
from cradle_lib.detection.runs.shards import join
from cradle_lib.errors import EngineError, JournalError
from cradle_lib.prompts import load_template

# Seconds between two polls of the jobs' states; short at first, so that short jobs end soon.
_FIRST, _LONGEST = 0.2, 10.0
_FINISHED: Final = (0, 1)  # Status 1: answers are missing or unusable, which the report states.

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
            help="Requirement of each job, as an option of sbatch such as gres=gpu:1, "
            "partition=gpu, time=8:00:00 or mem=64G; may be given several times."
        ),
    ] = None,
) -> None:
    """Run `cradle infer` as one job for each shard, and join the shards into one journal.

    All other options are those of `cradle infer`. Stopped or killed, the same command resumes; the
    shards keep their answers.
    """
    words = list(context.args)
    given = _parse(words)
    if given["shard"] is not None:
        raise EngineError("--shard is set for each job. Leave it out.")
    settings = opt.run_settings(given["model"], given["given"])
    corpus = load_corpus(given["corpus"], given["split"])
    chosen = choose_dialogues(corpus, settings.limit, given["sample"])
    folder, notice = given["folder"], settings.options.notice
    journal = run_path(settings.model, corpus, settings.history, None, folder, notice)
    files = [shard_path(journal, f"{index}/{shards}") for index in range(shards)]
    _require_free(journal, files)
    folder = journal.absolute().with_name(f".{journal.stem}.cluster")
    machines = _open_cluster(kind, sbatch or (), folder, shards)
    if settings.model.remote:
        words.append("--yes")
    if given["max_cost"] is not None:
        words += ["--max-cost", str(given["max_cost"] / shards)]
    commands = {
        index: ["infer", *words, "--shard", f"{index}/{shards}", "--out", str(file.absolute())]
        for index, file in enumerate(files)
    }
    total = sum(len(dialogue.user_turns) for dialogue in chosen)
    stored = sum(map(count_answers, files))
    with RunBar(settings.model.name, "turns", yes=given["yes"]) as bar:
        if settings.model.remote:
            template, shown = load_template(settings.model.prompt), settings.model.neutralise
            sizes = prompt_sizes(chosen, template, settings.history, neutralise=shown).values()
            what = f"{len(chosen)} dialogues of {corpus.name}"
            require_consent(settings.model, what, sizes, bar.agree)

        def show() -> None:
            bar.show(Progress(min(sum(map(count_answers, files)), total), total, stored))

        if failed := run_jobs(machines, commands, show):
            raise EngineError(
                f"{'; '.join(failed)}. Logs: {paths.shown(folder)}. The answers so far are kept: "
                "the same command resumes."
            )
    join(files, journal, corpus)
    for file in files:
        file.unlink()
        file.with_name(f".{file.name}.lock").unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    report_run(
        settings,
        corpus,
        given["corpus"],
        given["split"],
        journal,
        sample=given["sample"],
        as_json=given["as_json"],
    )


def _parse(words: Sequence[str]) -> dict[str, Any]:
    """Parses the options of ``cradle infer``; an invalid option ends the command."""
    reader = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
    reader.command("infer")(infer)
    command = typer.main.get_command(reader)
    return command.make_context("cradle cluster", list(words)).params


def _require_free(journal: Path, files: Sequence[Path]) -> None:
    """Refuses an existing journal, and shards of another number of jobs.

    The turns of such shards would be asked again.
    """
    if journal.exists():
        raise JournalError(
            f"{paths.shown(journal)}: already exists. If it is not finished, finish it with "
            "`cradle infer`; or move it away."
        )
    for other in set(journal_files(journal)) - {journal, *files}:
        count = other.stem.rpartition("-of-")[2]
        raise EngineError(
            f"{paths.shown(other)}: is a shard of an earlier start; its turns would be "
            f"asked again. Finish it with --shards {count}, or move its shards away."
        )


def _open_cluster(kind: str, sbatch: Sequence[str], folder: Path, shards: int) -> Slurm | Local:
    if opt.one_of(kind, ("slurm", "local"), "cluster") == "local" and sbatch:
        raise EngineError("local processes take no options of sbatch. Leave --sbatch out.")
    options = {name.strip("-"): value for name, _, value in (o.partition("=") for o in sbatch)}
    folder.mkdir(parents=True, exist_ok=True)
    return Slurm(folder, options) if kind == "slurm" else Local(folder, shards)


def run_jobs(
    cluster: Slurm | Local, commands: Mapping[int, Sequence[str]], show: Callable[[], None]
) -> list[str]:
    """Runs jobs until they end. A job that dies is submitted once more.

    On an exception, such as Ctrl-C, the jobs are interrupted; they still store the answers to
    calls in flight.

    Returns:
        A message for each job that failed, with its reason.
    """
    cluster.submit(commands)
    try:
        repeated: set[int] = set()
        failed: dict[int, str] = {}
        running = set(commands)
        seconds = _FIRST
        while running:
            show()
            time.sleep(seconds)
            seconds = min(1.3 * seconds, _LONGEST)
            for index, (status, reason) in cluster.ended(running).items():
                if status is None and index not in repeated:
                    repeated.add(index)
                    err.print(f"Shard {index} died ({reason}), and is submitted again.")
                    cluster.submit({index: commands[index]})
                    continue
                running.remove(index)
                if status not in _FINISHED:
                    failed[index] = reason
        show()
    except BaseException:
        err.print("Stopping the shards after their calls in flight. The same command resumes.")
        cluster.interrupt()
        raise
    return [f"shard {index}/{len(commands)}: {failed[index]}" for index in sorted(failed)]


def count_answers(journal: Path) -> int:
    """Counts the complete lines of answers in a journal, without failed ones."""
    if not journal.exists():
        return 0
    lines = journal.read_bytes().split(b"\n")[:-1]
    return sum(b'"outcome": ' in line and b'"outcome": "failed"' not in line for line in lines)
