"""``cradle models``: what the registry holds, the embedded model's weights, and its server."""

from __future__ import annotations

import signal
from threading import Event
from typing import Annotated

import typer
from rich.table import Table

from cradle_lib import paths
from cradle_lib.cli.console import err, out
from cradle_lib.detection import load_registry
from cradle_lib.detection.local.serving import PORT, serving
from cradle_lib.detection.local.weights import PARCELS, embedded_weights

app = typer.Typer(
    help="List the registry's models; prepare weights; serve the embedded one.",
    no_args_is_help=True,
)


@app.command("list")
def show() -> None:
    """List the models of models.yml."""
    table = Table(title=paths.shown(paths.REGISTRY))
    table.add_column("id", no_wrap=True)
    for column in ("name", "group", "engine", "default"):
        table.add_column(column, overflow="fold")
    registry = load_registry()
    for model in registry.sound:
        table.add_row(
            model.id,
            model.name,
            model.group,
            model.engine,
            "yes" if model.default else "",
        )
    out.print(table)
    for fault in registry.faults.values():
        err.print(f"Can't be used: {fault}", markup=False)


@app.command()
def fetch() -> None:
    """Prepare the embedded model's weights now; a run does it on first use otherwise."""
    for name in PARCELS:
        err.print(f"Fetching and converting {name}, unless it is there already.")
        out.print(f"Weights: {paths.shown(embedded_weights(name))}")


@app.command()
def serve(
    port: Annotated[int, typer.Option(help="Port on this machine; 0 for any free one.")] = PORT,
) -> None:
    """Serve the embedded model with llama.cpp, for the models smollm2-135m-openai and -anthropic.

    It listens on this machine only, until it is interrupted or terminated.
    """
    stopped = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with serving(port) as address:
        out.print(f"Serving at {address}. Stop with Ctrl-C.")
        stopped.wait()
