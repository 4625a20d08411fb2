"""``cradle models``: what the registry holds, and the embedded model's weights."""

from __future__ import annotations

import typer
from rich.table import Table

from cradle_lib import paths
from cradle_lib.cli.console import err, out
from cradle_lib.detection import load_registry
from cradle_lib.detection.weights import PARCELS, embedded_weights

app = typer.Typer(help="List the registry's models; prepare weights.", no_args_is_help=True)


@app.command("list")
def show() -> None:
    """List the models of models.yml."""
    table = Table(title=paths.shown(paths.REGISTRY))
    table.add_column("id", no_wrap=True)
    for column in ("name", "group", "engine", "default"):
        table.add_column(column, overflow="fold")
    for model in load_registry().values():
        table.add_row(
            model.id,
            model.name,
            model.group,
            model.engine,
            "yes" if model.default else "",
        )
    out.print(table)


@app.command()
def fetch() -> None:
    """Prepare the embedded model's weights now; a run does it on first use otherwise."""
    for name in PARCELS:
        err.print(f"Fetching and converting {name}, unless it is there already.")
        out.print(f"Weights: {paths.shown(embedded_weights(name))}")
