"""``cradle fork``: adds a page for the user's model to the book."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cradle_lib import paths
from cradle_lib.book.fork import fork as copy_page
from cradle_lib.book.plan import Project
from cradle_lib.cli.console import out
from cradle_lib.errors import BookError


def fork(
    name: Annotated[str, typer.Argument(help="Name of the notebook and of its page.")],
) -> None:
    """Copy the notebook "Add a model" under a new name, and add its page to the book."""
    if not paths.CHECKOUT:
        raise BookError(
            "the book is not part of an installed wheel. Unpack the source distribution, and run "
            "`make book` and this command in it."
        )
    copy = copy_page(Project(paths.ROOT), name)
    out.print(f"Notebook: {paths.shown(copy)}")
    out.print(f"Its page is in notebooks/pages.yml and book/_toc.yml as sections/{name}.")
    here = Path.cwd() == paths.ROOT
    out.print(f"Next: {shlex.join(['make', *([] if here else ['-C', str(paths.ROOT)]), 'book'])}")
