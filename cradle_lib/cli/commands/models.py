"""``cradle models``: the registry's models."""

from __future__ import annotations

from typing import Any

from cradle_lib import paths
from cradle_lib.cli import options as opt
from cradle_lib.cli.console import print_json, print_table
from cradle_lib.detection import load_registry
from cradle_lib.detection.runs.journal import list_runs


def models(as_json: opt.Json = False) -> None:
    """List the models of models.yml, and over which corpora each has been run.

    Unfinished runs are included. History settings other than the paper's are shown.
    """
    registry = load_registry()
    made = list_runs(paths.SHIPPED_RUNS, paths.RUNS)
    known: list[dict[str, Any]] = [
        {name: getattr(model, name) for name in ("id", "name", "group", "engine", "default")}
        | {"retired": model.retirement, "runs": made.pop(model.id, [])}
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
    retired = [model["retired"] for model in known if model["retired"]]
    notes = " ".join(["*: in the default book.", *retired])
    print_table(rows, paths.shown(paths.REGISTRY), notes)
