"""``cradle prompts``: list and show the prompt templates."""

from __future__ import annotations

from typing import Annotated

import typer

from cradle_lib import paths
from cradle_lib.cli.console import out
from cradle_lib.errors import RegistryError
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
    path = template_files().get(name)
    if path is None:
        raise RegistryError(
            f"no prompt template {name!r}; there are: {', '.join(template_files())}. "
            "`cradle prompts list` shows them."
        )
    out.print(path.read_text(encoding="utf-8"))
