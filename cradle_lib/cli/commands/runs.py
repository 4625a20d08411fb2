"""``cradle infer``, ``join`` and ``score``: ask a model, then see what it said."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from cradle_lib import paths
from cradle_lib.cli import options as opt
from cradle_lib.cli.command_table import part
from cradle_lib.cli.console import err, out, percent, print_json, print_table
from cradle_lib.cli.money import journal_usage, show_usage
from cradle_lib.cli.run_bar import RunBar
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.corpus.needs import unmet
from cradle_lib.detection import (
    OUTCOMES,
    Outcome,
    Predictions,
    corpus_options,
    journal_path,
    load_predictions,
    read_journal,
)
from cradle_lib.detection.journal import joined_path, journal_files
from cradle_lib.detection.parsing import needs_cleaning
from cradle_lib.detection.run import run
from cradle_lib.detection.shards import join as join_shards
from cradle_lib.errors import CradleError
from cradle_lib.scoring.conventions import LEVELS, NEEDED, Level
from cradle_lib.scoring.evaluate import Evaluation, evaluate
from cradle_lib.scoring.output import json_rows, level_scores, predicted_rates
from cradle_lib.scoring.scores import OVERALL


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
        Path, typer.Option("--out", help="Folder for journals.", show_default="runs")
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
    journal = journal_path(settings.model, loaded, settings.history, shard, folder)
    if folder.suffix == ".jsonl":
        journal = folder
    with RunBar(settings.model.name, "turns", yes=yes) as bar:
        try:
            run(
                settings.model,
                loaded,
                out=folder,
                history=settings.history,
                limit=settings.limit,
                sample=sample,
                shard=shard,
                options=settings.options,
                progress=bar.show,
                consent=bar.agree,
                max_cost=max_cost,
            )
        except CradleError:
            bar.stop()
            if bar.begun and journal.exists():
                _show_outcomes(journal, err if as_json else out)
            raise
    report_run(settings, loaded, journal, sample=sample, shard=shard, as_json=as_json)


def report_run(
    settings: opt.RunSettings,
    corpus: Corpus,
    journal: Path,
    *,
    sample: int | None,
    shard: str | None = None,
    as_json: bool,
) -> None:
    """Prints the outcomes of a run, and what it cost; ends with status 1 if answers are missing."""
    counts, cleaned = _show_outcomes(journal, err if as_json else out)
    entry = settings.model
    if as_json:
        content = {
            "journal": str(journal),
            "turns": counts.total(),
            "outcomes": {outcome: counts[outcome] for outcome in OUTCOMES},
            "cleaned": cleaned,
            "usage": journal_usage(entry, journal) if entry.is_service else None,
        }
        print_json(content)
    elif entry.is_service:
        show_usage(entry, journal)
    if counts[Outcome.FAILED] or (counts and not counts[Outcome.OK]):
        raise typer.Exit(1)
    if as_json:
        return
    when = f", when all {shard.partition('/')[2]} shards are made" if shard else ""
    words = ["cradle", "score", paths.shown(joined_path(journal)), *corpus_options(corpus)]
    words += ["--partial"] if sample is not None or settings.limit is not None else []
    out.print(f"Next{when}: {shlex.join(words)}")


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


def _cleaned_note(cleaned: int) -> str:
    """Says how many answers were read although they are not written as the prompt asks."""
    return f"Of the ok answers {cleaned:,} needed cleaning, such as removing Markdown."


def _show_outcomes(journal: Path, to: Console) -> tuple[Counter[Outcome], int]:
    """Prints and counts the outcomes of a journal, and how many answers needed cleaning."""
    answers = read_journal(journal)[1]
    counts = Counter(prediction.outcome for prediction in answers)
    cleaned = sum(p.outcome is Outcome.OK and needs_cleaning(p.answer) for p in answers)
    to.print(f"Journal: {paths.shown(journal)}")
    summary = ", ".join(f"{counts[outcome]:,} {outcome}" for outcome in OUTCOMES)
    to.print(f"{len(answers):,} user turns: {summary}.")
    if cleaned:
        to.print(_cleaned_note(cleaned))
    reasons = Counter(p.reason for p in answers if p.outcome is Outcome.FAILED and p.reason)
    for reason, number in reasons.most_common(1):
        err.print(f"Failed {number:,} times: {reason}")
    if counts[Outcome.FAILED]:
        err.print("The same command asks the questions that failed again.")
    if answers and not counts[Outcome.OK]:
        err.print(
            "No answer could be read; the journal has them under `answer`. If the model can't keep "
            "to the labels, try `--set mode=constrained`. If it reasons in a form that is not "
            "recognised, set `answer_after: TEXT` to the text after which its answer begins."
        )
    return counts, cleaned


def score(
    journals: Annotated[
        list[Path],
        typer.Argument(help="A run's journal, or all its shards; or bundles, one run each."),
    ],
    corpus: opt.Corpus = "surrogate",
    split: opt.Split = "test",
    partial: Annotated[
        bool, typer.Option(help="Score only the complete dialogues, and print their number.")
    ] = False,
    convention: opt.Convention = None,
    draws: opt.Draws = 10_000,
    seed: opt.DrawsSeed = 0,
    as_json: opt.Json = False,
) -> None:
    """Score a run at turn and dialogue level, and with confirms only; or several bundles.

    For dialogues without gold labels it prints what was predicted, per 100 user turns.
    """
    loaded = load_corpus(corpus, split)
    conventions = opt.parse_conventions(convention)

    def score_levels(run: Predictions) -> dict[Level, Evaluation]:
        options: dict[str, Any] = {"conventions": conventions, "draws": draws, "seed": seed}
        return {level: evaluate(run, level=level, **options) for level in LEVELS}

    bundles = [path for path in journals if path.suffix == ".zip"]
    if bundles and len(bundles) < len(journals):
        raise CradleError("Score bundles (*.zip) in one command, journals of a run in another.")
    if bundles:
        part("bundle")(bundles, loaded, score_levels, partial=partial, as_json=as_json)
        return
    run = load_predictions(journals, loaded, partial=partial)
    if no_labels := unmet(run.corpus, "labels"):
        show_predicted([run], f"{no_labels}: there is nothing to score against.", as_json=as_json)
        return
    results = score_levels(run)
    if as_json:
        print_json(level_scores(results))
        return
    rows: list[dict[Any, str]] = []
    for name in OVERALL:
        cells = {level: percent(*map(float, results[level].estimate(name))) for level in LEVELS}
        rows.append({"score": name.replace("_", " "), **cells})
    print_table(rows, f"{run.record.name} on {run.corpus.name}, percent", right=LEVELS)
    _show_answered(run)
    if results["turn"].cleaned:
        out.print(_cleaned_note(results["turn"].cleaned))
    reasons = [unmet(run.corpus, need) for need in NEEDED.values()]
    for reason in dict.fromkeys(filter(None, reasons)):
        out.print(f"{reason}: its precision, recall and F1 say nothing.")
    for level in LEVELS:
        out.print(str(results[level].signature))


def show_predicted(found: Sequence[Predictions], why: str, *, as_json: bool) -> None:
    """Prints what was predicted and how often, for dialogues without gold labels."""
    contents = [
        {
            "nothing_to_score": why,
            "run": one.record.name,
            "turns": len(one.masks),
            "of_turns": one.of_turns,
            "outcomes": one.outcome_counts,
            "predicted": json_rows(predicted_rates(one)),
        }
        for one in found
    ]
    if as_json:
        print_json(contents[0] if len(contents) == 1 else contents)
        return
    out.print(why)
    for one in found:
        rates = predicted_rates(one)[["label", "turns", "per_100", "dialogues"]]
        rates["per_100"] = [percent(rate / 100) for rate in rates["per_100"]]
        rates.columns = ["label", "user turns", "per 100 user turns", "dialogues"]
        title = f"Predictions of {one.record.name} on {one.corpus.name}"
        print_table(rates, title, right=["per 100 user turns"])
        _show_answered(one)


def _show_answered(run: Predictions) -> None:
    unusable = {name: n for name, n in run.outcome_counts.items() if n and name != "ok"}
    out.print(
        f"{len(run.masks):,} of {run.of_turns:,} user turns; unusable answers: {unusable or 0}"
    )
