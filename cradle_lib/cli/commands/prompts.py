"""``cradle prompts``: list and show the prompt templates."""

from __future__ import annotations

from typing import Annotated

import typer

from cradle_lib import paths
from cradle_lib.arguments import require_known
from cradle_lib.cli.console import out
from cradle_lib.prompts import load_template, template_files

app = typer.Typer(help="List or show prompt templates.", no_args_is_help=True)


@app.command("list")
def show() -> None:
    """List the prompt templates with their hashes."""
    for name, path in template_files().items():
        template = load_template(name, slots=None)
        out.print(f"{name}  {template.hash}  {paths.shown(path)}")


@app.command("show")
def text(name: Annotated[str, typer.Argument(help="Name of a template.")]) -> None:
    """Print a whole prompt template, with its slots in braces."""
    files = template_files()
    require_known("prompt template", name, files)
    out.print(files[name].read_text(encoding="utf-8"))
