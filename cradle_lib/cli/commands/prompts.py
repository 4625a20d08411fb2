"""``cradle prompts``: list and show the prompt templates, or import the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cradle_lib import paths
from cradle_lib.cli.console import out
from cradle_lib.errors import PromptError
from cradle_lib.prompts import import_latex, load_template, template_files

app = typer.Typer(help="List, show or import prompt templates.", no_args_is_help=True)


@app.command("list")
def show() -> None:
    """List the prompt templates with their hashes."""
    for name, path in template_files().items():
        template = load_template(name, slots=None)
        out.print(f"{name}  {template.hash}  {paths.shown(path)}")


@app.command("show")
def text(name: Annotated[str, typer.Argument(help="Name of a template.")]) -> None:
    """Print a prompt template whole, with its slots in braces."""
    path = template_files().get(name)
    if path is None:
        raise PromptError(
            f"no prompt template {name!r}; there are: {', '.join(template_files())}. "
            "`cradle prompts list` shows them."
        )
    out.print(path.read_text(encoding="utf-8"))


@app.command("import")
def from_latex(
    folder: Annotated[Path, typer.Argument(help="Folder with the paper's LaTeX prompt files.")],
    name: Annotated[str, typer.Option(help="What to call the imported templates.")] = "paper",
) -> None:
    """Turn the paper's LaTeX prompt files, for those who have them, into templates."""
    for path in import_latex(folder, name):
        out.print(f"Imported {path.stem}: {paths.shown(path)}")
    out.print("Choose one with `prompt:` in models.yml. Git ignores them.")
