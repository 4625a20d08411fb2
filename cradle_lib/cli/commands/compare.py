"""``cradle compare``: differences between runs and a baseline, with tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import pandas as pd
import typer

from cradle_lib.cli import options as opt
from cradle_lib.cli.console import out, print_json, print_table
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import Predictions, load_predictions, load_registry
from cradle_lib.detection.runs.find_runs import common_dialogues, load_named
from cradle_lib.display.layout import Layout
from cradle_lib.scoring.compare import compare as compare_runs
from cradle_lib.scoring.output import json_rows
from cradle_lib.scoring.paired_tests import PERMUTATIONS

# Columns of the printed table; a value includes its interval.
_COLUMNS: Final = (
    *("level", "score", "baseline_score", "own_score", "value", "low", "high"),
    *("adjusted_p", "verdict"),
)
_TITLES: Final = {"baseline_score": "Baseline", "own_score": "Run", "value": "Difference"}


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
    convention: opt.Convention = None,
    permutations: Annotated[
        int, typer.Option(min=1, help="Permutations for each p-value.")
    ] = PERMUTATIONS,
    seed: Annotated[int, typer.Option(help="Seed of the permutations.")] = 0,
    as_json: opt.Json = False,
) -> None:
    """Test whether runs differ from the first one; --json adds the F1 of each label."""
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
    )
    differences = comparison.to_frame()
    if as_json:
        content = {
            "systems": comparison.names,
            "permutations": permutations,
            "differences": json_rows(differences),
            "power": comparison.power_note,
        }
        print_json(content)
        return
    overall = differences[differences["label"].isna()]
    for name in comparison.names[1:]:
        _show(f"{name}\nAgainst {comparison.names[0]}", overall[overall["system"] == name])
    out.print(comparison.power_note)
    for signature in comparison.signatures.values():
        out.print(str(signature))


def _load(run: str, corpus: Corpus, *, partial: bool) -> Predictions:
    path = Path(run)
    # An id may contain a dot, and a file may have the name of an id: the registry takes precedence.
    if run not in load_registry() and (path.suffix or len(path.parts) > 1 or path.exists()):
        return load_predictions(path, corpus, partial=partial)
    return load_named(run, corpus, partial=partial)


def _names(arguments: Sequence[str], found: Sequence[Predictions]) -> list[str]:
    names = [run.record.name for run in found]
    return names if len(set(names)) == len(names) else list(arguments)


def _show(title: str, differences: pd.DataFrame) -> None:
    """Prints the table that a page would show."""
    layout = Layout(titles=_TITLES, formats={"value": "points"})
    heads, rows, _ = layout.cells(differences[list(_COLUMNS)])
    names = [head for (head,) in heads]
    texts = [dict(zip(names, map(str, row), strict=True)) for row in rows]
    numbers = [name for name, cell in zip(names, rows[0], strict=True) if cell.number]
    print_table(texts, f"{title}, percent and points", right=numbers)
