"""``cradle infer`` and ``join``: run a model, and join the shards of a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from cradle_lib import paths
from cradle_lib.cli import options as opt
from cradle_lib.cli.commands.score import cleaned_note
from cradle_lib.cli.console import command, err, out, print_json
from cradle_lib.cli.money import journal_usage, show_usage
from cradle_lib.cli.run_bar import RunBar
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import OUTCOMES, Outcome, read_journal
from cradle_lib.detection.models.engine import find_engine
from cradle_lib.detection.protocol.parsing import needs_cleaning
from cradle_lib.detection.runs.journal import joined_path, journal_files, read_record
from cradle_lib.detection.runs.matching import run_path
from cradle_lib.detection.runs.predictions import asked_turns
from cradle_lib.detection.runs.run import run
from cradle_lib.detection.runs.shards import join as join_shards
from cradle_lib.errors import CradleError

# What helps against answers that can't be read, by the setting that an engine must support.
_ADVICE: Final = {
    "mode": "If the model can't keep to the labels, try `--set mode=constrained`.",
    "answer_after": (
        "If it reasons in a form that is not recognised, try `--set answer_after=TEXT` with the "
        "text after which its answer begins."
    ),
}


def infer(
    model: opt.Model,
    given: opt.Set = None,
    corpus: opt.Corpus = "surrogate",
    split: opt.Split = "test",
    sample: opt.Sample = None,
    shard: Annotated[
        str | None, typer.Option(help="i/n: the i-th of n parts, counted from 0.")
    ] = None,
    folder: Annotated[
        Path,
        typer.Option("--out", help="Folder for journals, or a .jsonl file.", show_default="runs"),
    ] = paths.RUNS,
    max_cost: opt.MaxCost = None,
    yes: opt.Yes = False,
    as_json: opt.Json = False,
) -> None:
    """Ask a model about every user turn. Stopped or killed, the same command resumes.

    The exit status is 0 if every question got an answer and at least one could be read, and 1
    if a question failed or no answer could be read.
    """
    settings = opt.run_settings(model, given)
    loaded = load_corpus(corpus, split)
    notice = settings.options.notice
    journal = run_path(settings.model, loaded, settings.history, shard, folder, notice)
    with RunBar(settings.model.name, "turns", yes=yes) as bar:
        options = replace(settings.options, progress=bar.show, consent=bar.agree, max_cost=max_cost)
        try:
            run(
                settings.model,
                loaded,
                out=journal,
                history=settings.history,
                limit=settings.limit,
                sample=sample,
                shard=shard,
                options=options,
            )
        except CradleError:
            bar.stop()
            if bar.started and journal.exists():
                _show_outcomes(journal, loaded, err if as_json else out)
            raise
    report_run(
        settings, loaded, corpus, split, journal, sample=sample, shard=shard, as_json=as_json
    )


def report_run(
    settings: opt.RunSettings,
    loaded: Corpus,
    corpus: str,
    split: str,
    journal: Path,
    *,
    sample: int | None,
    shard: str | None = None,
    as_json: bool,
) -> None:
    """Prints the outcomes and the cost of a run over a corpus, loaded from what the user named.

    The exit status is 1 if a question failed or no answer could be read.
    """
    counts, cleaned = _show_outcomes(journal, loaded, err if as_json else out)
    entry = settings.model
    if as_json:
        content = {
            "journal": str(journal),
            "turns": counts.total(),
            "outcomes": {outcome: counts[outcome] for outcome in OUTCOMES},
            "cleaned": cleaned,
            "usage": journal_usage(entry, journal) if entry.kind == "service" else None,
        }
        print_json(content)
    elif entry.kind == "service":
        show_usage(entry, journal)
    if counts[Outcome.FAILED] or (counts and not counts[Outcome.OK]):
        raise typer.Exit(1)
    if as_json:
        return
    when = f", when all {shard.partition('/')[2]} shards are made" if shard else ""
    words = ["score", paths.shown(joined_path(journal))]
    words += ["--corpus", corpus, "--split", split]
    words += ["--partial"] if sample is not None or settings.limit is not None else []
    out.print(f"Next{when}: {command(*words)}")


def join(
    journals: Annotated[
        list[Path], typer.Argument(help="All shards of a run, or the path of the joined journal.")
    ],
    folder: Annotated[
        Path | None,
        typer.Option("--out", help="Joined journal to write; default: next to the shards."),
    ] = None,
    corpus: opt.Corpus = "surrogate",
    split: opt.Split = "test",
    as_json: opt.Json = False,
) -> None:
    """Join the shards of a run into one journal. The shards stay as they are."""
    shards = [file for path in journals for file in journal_files(path)]
    target = folder or joined_path(shards[0])
    join_shards(shards, target, load_corpus(corpus, split))
    if as_json:
        print_json({"journal": str(target), "shards": len(shards)})
        return
    out.print(f"{len(shards)} shards. Journal: {paths.shown(target)}")


def _show_outcomes(journal: Path, corpus: Corpus, to: Console) -> tuple[Counter[Outcome], int]:
    """Prints and counts the outcomes of a journal, and how many answers needed cleaning.

    Answers about turns of an earlier version of the corpus are not counted.
    """
    asked = asked_turns(corpus)
    answers = [p for p in read_journal(journal)[1] if (p.dialogue, p.turn) in asked]
    counts = Counter(prediction.outcome for prediction in answers)
    cleaned = sum(p.outcome is Outcome.OK and needs_cleaning(p.answer) for p in answers)
    to.print(f"Journal: {paths.shown(journal)}")
    summary = ", ".join(f"{counts[outcome]:,} {outcome}" for outcome in OUTCOMES)
    to.print(f"{len(answers):,} user turns: {summary}.")
    if cleaned:
        to.print(cleaned_note(cleaned))
    reasons = Counter(p.reason for p in answers if p.outcome is Outcome.FAILED and p.reason)
    for reason, number in reasons.most_common(1):
        err.print(f"Failed {number:,} times: {reason}")
    if counts[Outcome.FAILED]:
        err.print("The same command repeats the failed questions.")
    if counts[Outcome.UNPARSED] and not counts[Outcome.OK]:
        supported = find_engine(read_record(journal).engine).uses
        advice = (text for name, text in _ADVICE.items() if name in supported)
        sentence = "No answer could be read; the journal has them under `answer`."
        err.print(" ".join([sentence, *advice]))
    return counts, cleaned
