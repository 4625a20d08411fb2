"""The ``cradle`` command: its sub-commands, and how errors leave it."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated, Final

import typer
from rich.text import Text

from cradle_lib.cli import money
from cradle_lib.cli.commands import (
    annotate,
    compare,
    construct,
    data,
    exchange,
    fork,
    models,
    prompts,
    runs,
    train,
)
from cradle_lib.cli.console import err, out
from cradle_lib.errors import CradleError
from cradle_lib.version import library_version

INTERRUPTED: Final = 130
_STATUSES: Final = (
    "Exit status: 0 for success; 1 if a command did its work and the result is a failure (an "
    "answer that failed, a count that differs, a check that was not passed); 2 for anything that "
    "could not be done, with the reason in a line or two; 130 if interrupted."
)

app = typer.Typer(
    help=(
        "Crisis detection, turn by turn: run models over dialogues and score them. "
        "For research; not triage, diagnosis or a medical device."
    ),
    no_args_is_help=True,
    epilog=_STATUSES,
    pretty_exceptions_enable=False,
)
app.add_typer(data.app, name="data")
app.add_typer(prompts.app, name="prompts")
app.add_typer(models.app, name="models")
app.add_typer(construct.app, name="construct")
app.add_typer(annotate.app, name="annotate")
app.add_typer(exchange.exports, name="export")
app.add_typer(exchange.imports, name="import")
app.command("estimate")(money.estimate)
app.command("infer")(runs.infer)
app.command("join")(runs.join)
app.command("score")(runs.score)
app.command("show")(runs.show)
app.command("compare")(compare.compare)
app.command("bundle")(exchange.bundle)
app.command("verify")(exchange.verify)
app.command("train")(train.train)
app.command("fork")(fork.fork)


def _print_version(asked: bool) -> None:
    if asked:
        out.print(f"cradle {library_version()}")
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
    """Take the options that stand before a command."""


def main() -> None:
    """Runs the command line.

    An error of the project becomes one or two lines and exit code 2; an interrupt
    becomes exit code 130, after which the same command resumes the run.
    """
    try:
        app()
        return
    except CradleError as error:
        message = str(error)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        message = f"{place}{error.strerror or error}"
    except (KeyboardInterrupt, SystemExit) as end:
        # Typer makes an exit of an interrupt.
        if isinstance(end, SystemExit) and end.code != INTERRUPTED:
            raise
        command = shlex.join(["cradle", *sys.argv[1:]])
        err.print(f"interrupted; the same command resumes: {command}")
        sys.exit(INTERRUPTED)
    err.print(Text.assemble(("error:", "red"), " ", message))
    sys.exit(2)
