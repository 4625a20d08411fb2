"""``cradle score``: the scores of a run, or its predictions if there are no gold labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cradle_lib.cli import options as opt
from cradle_lib.cli.command_table import part
from cradle_lib.cli.console import interval_note, out, percent, print_json, print_table
from cradle_lib.corpus import load_corpus
from cradle_lib.corpus.needs import unmet
from cradle_lib.detection.runs.predictions import Predictions, load_predictions
from cradle_lib.errors import CradleError
from cradle_lib.scoring.conventions import LEVELS, Level
from cradle_lib.scoring.evaluate import Evaluation, evaluate
from cradle_lib.scoring.output import json_rows, level_scores, predicted_rates
from cradle_lib.scoring.scores import OVERALL
from cradle_lib.statistics.bootstrap import DRAWS


def score(
    journals: Annotated[
        list[Path],
        typer.Argument(help="The journal or all shards of one run, or bundles."),
    ],
    corpus: opt.Corpus = "surrogate",
    split: opt.Split = "test",
    partial: Annotated[
        bool, typer.Option(help="Score only the complete dialogues, and print their number.")
    ] = False,
    convention: opt.Convention = None,
    draws: opt.Draws = DRAWS,
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
    results = score_levels(run)
    # Conventions may score labels outside user turns.
    if (no_labels := unmet(run.corpus, "labels")) and results["turn"].undefined_because:
        show_predicted([run], f"{no_labels}: there is nothing to score against.", as_json=as_json)
        return
    if as_json:
        print_json(level_scores(results))
        return
    rows: list[dict[Any, str]] = []
    for name in OVERALL:
        cells = {level: in_percent(results[level], name) for level in LEVELS}
        rows.append({"score": name.replace("_", " "), **cells})
    title = f"{run.record.name} on {run.corpus.name}, percent"
    print_table(rows, title, interval_note(rows), right=LEVELS)
    _show_answered(run)
    for sentence in results["turn"].left_out:
        out.print(sentence)
    if run.cleaned:
        out.print(cleaned_note(run.cleaned))
    for level, found in results.items():
        if reason := found.undefined_because:
            out.print(f"{reason}: no score at level {level} is defined.")
    for level in LEVELS:
        out.print(str(results[level].signature))


def in_percent(found: Evaluation, score: str) -> str:
    """Formats a score in percent, with its interval if there were bootstrap draws."""
    value, *ends = map(float, found.estimate(score))
    return percent(value, *(ends if found.signature.draws else ()))


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
    counts = run.outcome_counts.items()
    unusable = ", ".join(f"{n:,} {name}" for name, n in counts if n and name != "ok")
    out.print(
        f"{len(run.masks):,} of {run.of_turns:,} user turns; unusable answers: {unusable or 0}"
    )


def cleaned_note(cleaned: int) -> str:
    """States how many usable answers did not have exactly the format that the prompt asks for."""
    return f"Of the ok answers {cleaned:,} needed cleaning, such as removing Markdown."
