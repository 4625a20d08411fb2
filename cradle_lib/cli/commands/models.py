"""``cradle models``: the registry's models, and the embedded model's weights."""

from __future__ import annotations

from typing import Any

import typer

from cradle_lib import paths
from cradle_lib.cli import options as opt
from cradle_lib.cli.console import err, out, print_json, print_table
from cradle_lib.detection import load_registry
from cradle_lib.detection.journal import made_runs
from cradle_lib.detection.local.embedded import ORIGINS, embedded_weights

app = typer.Typer(
    help="List the registry's models, or prepare weights.",
    no_args_is_help=True,
)


@app.command("list")
def show(as_json: opt.Json = False) -> None:
    """List the models of models.yml, and over which corpora each has been run.

    The history setting follows the corpus if it is not the paper's. Unfinished runs are included.
    """
    registry = load_registry()
    made = made_runs(paths.SHIPPED_RUNS, paths.RUNS)
    known: list[dict[str, Any]] = [
        {name: getattr(model, name) for name in ("id", "name", "group", "engine", "default")}
        | {"runs": made.pop(model.id, [])}
        for model in registry.values()
    ]
    others = [{"id": name, "runs": runs} for name, runs in made.items() if name not in registry]
    if as_json:
        print_json({"models": known, "without_entry": others})
        return
    rows = [
        {
            "id": f"{model['id']}{' *' * bool(model.get('default'))}",
            "name": model.get("name", "no entry"),
            "engine": model.get("engine", ""),
            "run over": ", ".join(model["runs"]),
        }
        for model in (*known, *others)
    ]
    print_table(rows, paths.shown(paths.REGISTRY), "*: in the default book")


@app.command()
def fetch() -> None:
    """Prepare the embedded model's weights now, instead of on their first use."""
    for name in ORIGINS:
        err.print(f"Fetching and converting {name}, unless it is there already.")
        out.print(f"Weights: {paths.shown(embedded_weights(name))}")
