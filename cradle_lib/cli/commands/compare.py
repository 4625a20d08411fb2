"""``cradle compare``: differences between runs and a baseline, with tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from cradle_lib.cli import options as opt
from cradle_lib.cli.console import out, percent, print_json, print_table
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import Predictions, find_model, load_predictions, load_registry
from cradle_lib.detection.find_runs import common_dialogues, load_run
from cradle_lib.labels import short
from cradle_lib.scoring.compare import compare as compare_runs
from cradle_lib.scoring.output import json_rows


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(help="Journals, or ids of models that were run; the first is the baseline."),
    ],
    corpus: opt.Corpus = "surrogate",
    split: opt.Split = "test",
    common: Annotated[
        bool, typer.Option(help="Compare on the dialogues that all runs cover.")
    ] = False,
    about: Annotated[
        list[str] | None,
        typer.Option(help="Part of the signature that may differ, such as history."),
    ] = None,
    convention: opt.Convention = None,
    labels: Annotated[bool, typer.Option(help="Show the F1 of each label too.")] = False,
    permutations: Annotated[
        int, typer.Option(min=1, help="Permutations for each p-value.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the permutations.")] = 0,
    as_json: opt.Json = False,
) -> None:
    """Test whether runs differ from the first one."""
    loaded = load_corpus(corpus, split)
    found = [_load(run, loaded, partial=common) for run in runs]
    if common:
        found = common_dialogues(found)
    comparison = compare_runs(
        found,
        names=_names(runs, found),
        conventions=opt.parse_conventions(convention),
        permutations=permutations,
        seed=seed,
        about=tuple(about or ()),
    )
    differences = comparison.to_frame()
    if as_json:
        content = {
            "systems": comparison.names,
            "permutations": comparison.permutations,
            "differences": json_rows(differences),
            "same": dict(comparison.same),
            "power": comparison.power_note,
        }
        print_json(content)
        return
    of_labels = differences["label"].notna()
    for name in comparison.names[1:]:
        own = differences["system"] == name
        _show(f"{name}\nAgainst {comparison.names[0]}", differences[own & ~of_labels])
        if labels:
            title = f"{name}\nF1 of each label at turn level, against {comparison.names[0]}"
            _show(title, differences[own & of_labels], level=False)
    for note in comparison.notes:
        out.print(note)
    out.print(comparison.power_note)
    for signature in comparison.signatures.values():
        out.print(str(signature))


def _load(run: str, corpus: Corpus, *, partial: bool) -> Predictions:
    registry = load_registry()
    path = Path(run)
    # An id may hold a dot, and a file may be called like an id: the registry comes first.
    if run not in registry and (path.suffix or len(path.parts) > 1 or path.exists()):
        return load_predictions(path, corpus, partial=partial)
    return load_run(find_model(run, registry), corpus, partial=partial)


def _names(arguments: Sequence[str], found: Sequence[Predictions]) -> list[str]:
    if len(set(arguments)) < len(arguments):
        return list(arguments)
    names = [run.record.name for run in found]
    histories = [f"{run.record.name}, history {run.record.history}" for run in found]
    best = histories if len(set(histories)) > len(set(names)) else names
    before = [best[:place].count(name) for place, name in enumerate(best)]
    return [f"{name} ({n + 1})" if n else name for name, n in zip(best, before, strict=True)]


def _chance(p: float) -> str:
    """Prints a p-value; one that would be shown as 0 is smaller than what is shown, and not 0."""
    return "" if math.isnan(p) else "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def _show(title: str, differences: pd.DataFrame, *, level: bool = True) -> None:
    rows: list[dict[str, str]] = []
    for row in differences.to_dict("records"):
        bounds = f" [{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]"
        value = f"{100 * row['value']:+.1f}" + ("" if math.isnan(row["low"]) else bounds)
        about = {"level": row["level"], "score": row["score"].replace("_", " ")}
        rows.append(
            (about if level else {"label": short(row["label"])})
            | {
                "baseline": percent(row["baseline_score"], digits=1),
                "run": percent(row["own_score"], digits=1),
                "difference": "n/a" if math.isnan(row["value"]) else value,
                "adjusted p": _chance(row["adjusted_p"]),
                "verdict": row["verdict"],
            }
        )
    at_right = ["baseline", "run", "difference", "adjusted p"]
    print_table(rows, f"{title}, percent and points", right=at_right)
