"""``cradle doctor`` and ``cradle serve-command``: what fits here, and how a server is started."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Annotated

import pandas as pd
import typer

from cradle_lib.cli import options as opt
from cradle_lib.cli.console import err, out, print_frame, print_json
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import find_model, load_registry, resolve
from cradle_lib.detection.local.wave.self_test import SECONDS, compare_engines
from cradle_lib.detection.models.hosting import (
    GIGABYTE,
    constraint,
    fit,
    seen_gpus,
    serve_command,
)
from cradle_lib.detection.models.shape import CONTEXT
from cradle_lib.errors import EngineError

_MODEL = "smollm2-135m"


def doctor(
    engine: Annotated[
        str | None, typer.Option(help="wave: compare it with the reference engine.")
    ] = None,
    device: Annotated[str, typer.Option(help="With --engine: cuda, cuda:1 or cpu.")] = "cuda",
    model: Annotated[str, typer.Option(help="With --engine: a model of this machine.")] = _MODEL,
    seconds: Annotated[
        float, typer.Option(min=0, help="With --engine: how long the reference engine may take.")
    ] = SECONDS,
    as_json: opt.Json = False,
) -> None:
    """Say which models fit on the GPUs of this machine and why others do not; or test an engine.

    The exit status of a test is 1 if the engines differ.
    """
    if engine is not None:
        _test(engine, device, model, seconds, as_json)
        return
    gpus = seen_gpus()
    rows = [
        (entry.id, *fit(entry.shape, gpus))
        for entry in load_registry().sound
        if entry.shape is not None
    ]
    if as_json:
        models = [{"id": name, "fits": fits, "why": why} for name, fits, why in rows]
        print_json({"gpus": [asdict(gpu) for gpu in gpus], "models": models})
        return
    for number, gpu in enumerate(gpus):
        free, memory = gpu.free / GIGABYTE, gpu.memory / GIGABYTE
        out.print(f"GPU {number}: {gpu.name}, {free:,.0f} of {memory:,.0f} GB free")
    if not gpus:
        out.print("No GPU that PyTorch sees. Models of a few hundred million parameters run here.")
    caption = "Computed from models.yml. No model of this table was run by this project."
    told = [(name, "yes" if fits else "no", why) for name, fits, why in rows]
    print_frame(pd.DataFrame(told, columns=["model", "fits", "what it needs"]), caption=caption)


def _test(engine: str, device: str, name: str, seconds: float, as_json: bool) -> None:
    if engine != "wave":
        raise EngineError(f"there is no test of engine {engine!r}. Choose wave.")
    found = compare_engines(resolve(name), load_corpus("surrogate"), device, seconds=seconds)
    if as_json:
        print_json(found.report)
    else:
        for field, value in found.report.items():
            shown = (
                ", ".join(f"{k} {v}" for k, v in value.items()) if field == "versions" else value
            )
            out.print(f"{field.replace('_', ' ')}: {shown}", markup=False)
        out.print("Report these lines, whatever they say: CONTRIBUTING.md says where.")
    if not found.passed:
        raise typer.Exit(1)


def serving(
    model: Annotated[str, typer.Argument(help="An entry that is asked through a server.")],
    server: Annotated[str, typer.Option(help="vllm or sglang.")] = "vllm",
    gpus: Annotated[
        int | None, typer.Option(min=1, help="GPUs to divide it among; by default those needed.")
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(min=1, help="Gigabytes of each; by default what is seen here, or 80."),
    ] = None,
    context: Annotated[int, typer.Option(min=256, help="Most tokens of a question.")] = CONTEXT,
    constrained: Annotated[
        bool, typer.Option("--constrained", help="Only answers that parse can be written.")
    ] = False,
    as_json: opt.Json = False,
) -> None:
    """Print the command that serves a model of models.yml, and what asks it then."""
    entry = find_model(model, load_registry())
    seen = min((gpu.memory for gpu in seen_gpus()), default=None)
    each = memory * GIGABYTE if memory is not None else seen
    words = serve_command(
        entry,
        server,  # type: ignore[arg-type]  # it says itself which there are
        gpus=gpus,
        memory=each,
        context=context,
        constrained=constrained,
    )
    ask = ["cradle", "infer", "--model", entry.id, "--concurrency", "64"]
    ask += ["--decoding", constraint(server)] if constrained else []  # type: ignore[arg-type]
    if as_json:
        print_json({"serve": words, "ask": ask})
        return
    typer.echo(shlex.join(words))
    if gpus is None and each is None:
        err.print("For GPUs of 80 GB, as none is seen here: --memory or --gpus say otherwise.")
    err.print("This project has no GPU: neither this command nor the model was run by it.")
    err.print(f"Then: {shlex.join(ask)}")
    err.print("With --prompt append, another run, only the new turns of a question are computed.")
