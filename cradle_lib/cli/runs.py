"""``cradle infer`` and ``cradle score``: ask a model, then score what it said."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
)
from rich.table import Column, Table

from cradle_lib import detection, paths
from cradle_lib.cli.console import err, out
from cradle_lib.cli.money import ask, show_usage
from cradle_lib.cli.options import (
    CorpusOption,
    HistoryOption,
    LimitOption,
    ModelOption,
    SampleOption,
    SplitOption,
    parse_history,
)
from cradle_lib.cli.pace import Pace
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import Options, find_model, in_format, load_predictions, load_registry
from cradle_lib.scoring.conventions import LEVELS
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.scores import OVERALL


def infer(
    model: ModelOption,
    corpus: CorpusOption = "surrogate",
    split: SplitOption = "test",
    limit: LimitOption = None,
    sample: SampleOption = None,
    shard: Annotated[
        str | None, typer.Option(help="i/n: the i-th of n parts, counted from 0.")
    ] = None,
    history: HistoryOption = "self",
    folder: Annotated[Path, typer.Option("--out", help="Folder for journals.")] = paths.RUNS,
    device: Annotated[str | None, typer.Option(help="For instance cpu or cuda:1.")] = None,
    dtype: Annotated[
        str | None, typer.Option(help="Number format of local weights, for instance bfloat16.")
    ] = None,
    device_map: Annotated[
        str | None, typer.Option(help="Spread the weights over several GPUs: auto.")
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Dialogues at once, for a model behind an API.")
    ] = 8,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Dialogues at once, for the wave engine.")
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(min=0, help="Stop before this run, all starts together, costs more dollars."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Agree that text is sent to a remote model.")
    ] = False,
) -> None:
    """Ask a model about every user turn. Stopped or killed, the same command resumes."""
    entry = find_model(model, load_registry())
    entry = entry if dtype is None else in_format(entry, dtype)
    loaded = load_corpus(corpus, split)
    chosen_history = parse_history(history)
    columns = (
        SpinnerColumn(),
        TextColumn(
            "{task.description}",
            table_column=Column(max_width=24, no_wrap=True, overflow="ellipsis"),
        ),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}"),
    )
    pace = Pace()
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(entry.name, total=None, pace="")

        def show(progress: detection.Progress) -> None:
            pace.update(progress, time.monotonic())
            bar.update(task, completed=progress.done, total=progress.total, pace=str(pace))

        def agree(question: str) -> bool:
            bar.stop()
            agreed = yes or ask(question)
            bar.start()
            return agreed

        journal = detection.run(
            entry,
            loaded,
            out=folder,
            history=chosen_history,
            limit=limit,
            sample=sample,
            shard=shard,
            options=Options(
                device=device,
                device_map=device_map,
                concurrency=concurrency,
                batch=batch,
                # It may quote a service, whose words are no markup.
                notice=partial(err.print, markup=False),
            ),
            progress=show,
            consent=agree,
            max_cost=max_cost,
        )
    out.print(f"Journal: {paths.shown(journal)}")
    if entry.is_service:
        show_usage(entry, journal, loaded, chosen_history)


def score(
    journals: Annotated[list[Path], typer.Argument(help="A run's journal, or all its shards.")],
    corpus: CorpusOption = "surrogate",
    split: SplitOption = "test",
    partial: Annotated[
        bool, typer.Option(help="Score the dialogues that are complete, and say n of N.")
    ] = False,
    draws: Annotated[int, typer.Option(min=0, help="Bootstrap draws of dialogues.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Their seed.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Score a run at turn and dialogue level, and with confirms only."""
    predictions = load_predictions(journals, load_corpus(corpus, split), partial=partial)
    results = {
        level: evaluate(predictions, level=level, draws=draws, seed=seed) for level in LEVELS
    }
    if as_json:
        typer.echo(json.dumps({k: v.as_dict() for k, v in results.items()}, indent=2))
        return
    table = Table(title=f"{predictions.record.name} on {predictions.corpus.name}, percent")
    table.add_column("score")
    for level in LEVELS:
        table.add_column(level, justify="right")
    for name in OVERALL:
        cells = []
        for level in LEVELS:
            value, low, high = results[level].estimate(name)
            bounds = "" if low is None or high is None else f" [{100 * low:.1f}, {100 * high:.1f}]"
            cells.append(f"{100 * value:.2f}{bounds}")
        table.add_row(name.replace("_", " "), *cells, end_section=name == "jaccard")
    out.print(table, markup=False)
    turns = results["turn"]
    unread = {name: n for name, n in turns.outcomes.items() if n and name != "ok"}
    out.print(f"{turns.turns:,} of {turns.of_turns:,} user turns; answers not read: {unread or 0}")
    for level in LEVELS:
        out.print(str(results[level].signature), markup=False)
