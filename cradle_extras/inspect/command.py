"""``cradle export inspect``: exports a run as a log of Inspect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cradle_extras.inspect.log import export_log
from cradle_lib import paths
from cradle_lib.cli import options as opt
from cradle_lib.cli.console import out, print_json
from cradle_lib.corpus import load_corpus

exports = typer.Typer(help="Write a run for another tool.", no_args_is_help=True)


@exports.callback()
def _exports() -> None:
    """Write a run for another tool."""


@exports.command("inspect")
def to_log(
    journal: Annotated[Path, typer.Argument(help="A finished run's journal.")],
    corpus: opt.Corpus = "surrogate",
    split: opt.Split = "test",
    log: Annotated[
        Path | None,
        typer.Option("--out", help="Log to write; default: MODEL.CORPUS.eval in logs/."),
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Write a run as a log that `inspect view` opens, with one sample for each dialogue."""
    loaded = load_corpus(corpus, split)
    target = log or Path("logs") / f"{journal.stem}.{loaded.name}.eval"
    number = export_log(journal, loaded, target)
    if as_json:
        print_json({"dialogues": number, "log": str(target)})
        return
    out.print(f"{number:,} dialogues: {paths.shown(target)}. It contains their text.")
    out.print(f"Open it with `inspect view --log-dir {target.parent}`.")
