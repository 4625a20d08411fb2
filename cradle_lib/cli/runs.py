"""``cradle infer`` and ``cradle score``: ask a model, then score what it said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from cradle_lib import detection, paths
from cradle_lib.cli.console import err, out
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import Options, find_model, load_predictions, load_registry
from cradle_lib.errors import CradleError
from cradle_lib.record import History
from cradle_lib.scoring.conventions import LEVELS
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.scores import OVERALL

CorpusOption = Annotated[
    str, typer.Option("--corpus", help="surrogate, hub, or a file in the release's format.")
]
SplitOption = Annotated[str, typer.Option(help="train, dev or test, for a corpus by name.")]


def infer(
    model: Annotated[str, typer.Option(help="Id of the model in models.yml.")],
    corpus: CorpusOption = "surrogate",
    split: SplitOption = "test",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N dialogues.")] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Only N dialogues, stratified by scenario and timing.")
    ] = None,
    shard: Annotated[
        str | None, typer.Option(help="i/n: the i-th of n parts, counted from 0.")
    ] = None,
    history: Annotated[
        str, typer.Option(help="Whose tags the history shows: self (the paper's), gold, none.")
    ] = "self",
    folder: Annotated[Path, typer.Option("--out", help="Folder for journals.")] = paths.RUNS,
    device: Annotated[str | None, typer.Option(help="For instance cpu or cuda:1.")] = None,
    device_map: Annotated[
        str | None, typer.Option(help="Spread the weights over several GPUs: auto.")
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Dialogues at once, for a model behind an API.")
    ] = 8,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Dialogues at once, for the wave engine.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Agree that text is sent to a remote model.")
    ] = False,
) -> None:
    """Ask a model about every user turn. Stopped or killed, the same command resumes."""
    entry = find_model(model, load_registry())
    loaded = load_corpus(corpus, split)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(entry.name, total=None)

        def agree(question: str) -> bool:
            bar.stop()
            agreed = yes or typer.confirm(question, err=True)
            bar.start()
            return agreed

        journal = detection.run(
            entry,
            loaded,
            out=folder,
            history=_history(history),
            limit=limit,
            sample=sample,
            shard=shard,
            options=Options(
                device=device,
                device_map=device_map,
                concurrency=concurrency,
                batch=batch,
                notice=err.print,
            ),
            progress=lambda p: bar.update(task, completed=p.done, total=p.total),
            consent=agree,
        )
    out.print(f"Journal: {paths.shown(journal)}")


def _history(name: str) -> History:
    for history in get_args(History):
        if name == history:
            return history  # type: ignore[no-any-return]  # get_args forgets what it holds
    raise CradleError(f"no history {name!r}. Choose one of {', '.join(get_args(History))}.")


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
