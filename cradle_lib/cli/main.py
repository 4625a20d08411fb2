"""The ``cradle`` command: its sub-commands, error messages and exit statuses."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Final

import typer

from cradle_lib.cli.command_table import Command, CommandGroup
from cradle_lib.errors import CradleError

INTERRUPTED: Final = 130
_STATUSES: Final = (
    "Exit status: 0 for success; 1 if a command ran and found a failure (a failed question, a "
    "count that differs, a failed check); 2 if a command could not run, with the reason in a line "
    "or two; 130 if interrupted."
)
_RUN, _SCORE, _BOOK = "Run a model", "Score and compare", "Data, prompts and pages"
_HERE: Final = "cradle_lib.cli"
_COMMANDS: Final = f"{_HERE}.commands"
CORE: Final = (
    Command("infer", f"{_COMMANDS}.runs:infer", "Ask a model about every user turn.", _RUN),
    Command("estimate", f"{_HERE}.money:estimate", "Estimate the cost of a run.", _RUN),
    Command("join", f"{_COMMANDS}.runs:join", "Join the shards of a run into one journal.", _RUN),
    Command("models", f"{_COMMANDS}.models:models", "List the models of the registry.", _RUN),
    Command("score", f"{_COMMANDS}.score:score", "Score a run, or several bundles.", _SCORE),
    Command("compare", f"{_COMMANDS}.compare:compare", "Test runs against the first.", _SCORE),
    Command("data", f"{_COMMANDS}.data:app", "Check, convert and fetch corpora.", _BOOK),
    Command("prompts", f"{_COMMANDS}.prompts:app", "List or show prompt templates.", _BOOK),
    Command("fork", f"{_COMMANDS}.fork:fork", "Make a page for your own model.", _BOOK),
)


class _Group(CommandGroup):
    core = CORE


app = typer.Typer(
    cls=_Group,
    help=(
        "Crisis detection, turn by turn: run models over dialogues and score them. "
        "For research; not triage, diagnosis or a medical device."
    ),
    no_args_is_help=True,
    epilog=_STATUSES,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        from cradle_lib.version import library_version

        typer.echo(f"cradle {library_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Take the options that precede a command."""


def main() -> None:
    """Runs the command line.

    An error of the project or the operating system is printed in one or two lines, with exit
    status 2. After an interrupt (exit status 130) the same command resumes the run.
    """
    # To find plugins, Pydantic would read the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # NumPy's matrix products are small here: threads would wait longer than they compute.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        app()
        return
    except CradleError as error:
        message = str(error)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        message = f"{place}{error.strerror or error}"
    except (KeyboardInterrupt, SystemExit) as end:
        # Typer turns an interrupt into a SystemExit.
        if isinstance(end, SystemExit) and end.code != INTERRUPTED:
            raise
        from cradle_lib.cli.console import command, err

        err.print(f"interrupted; the same command resumes: {command(*sys.argv[1:])}")
        sys.exit(INTERRUPTED)
    from rich.text import Text

    from cradle_lib.cli.console import err

    err.print(Text.assemble(("error:", "red"), " ", message))
    sys.exit(2)
