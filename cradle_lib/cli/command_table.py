"""Commands by name, loaded when they are called, so that ``cradle --help`` imports none of them.

Optional parts add commands through an entry point of the group ``cradle.commands``, whose value is
a list of :class:`Command`. Through the group ``cradle.parts`` they add functions that core commands
call, such as the scoring of bundles. The core imports no optional part.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from cradle_lib import paths
from cradle_lib.errors import CradleError

COMMANDS: Final = "cradle.commands"
PARTS: Final = "cradle.parts"


class Command(NamedTuple):
    """One command of ``cradle``.

    Attributes:
        name: Its name.
        target: ``module:object`` of a Typer application or a function.
        help: One line for ``cradle --help``.
        group: Its heading in that help.
        extra: Name of the optional dependencies that it needs; empty for none.
    """

    name: str
    target: str
    help: str
    group: str
    extra: str = ""

    def load(self) -> Any:
        """Imports the command.

        Raises:
            CradleError: If a package is not installed; the message says how to install it.
        """
        module, _, attribute = self.target.partition(":")
        try:
            found = getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            raise _missing(f"cradle {self.name}", error, self.extra) from None
        if not isinstance(found, typer.Typer):
            app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
            app.command(self.name)(found)
            found = app
        command = typer.main.get_command(found)
        command.name = self.name
        return command


class CommandGroup(TyperGroup):
    """The group of all commands: those of the core, and those of optional parts."""

    #: Commands of the core, in the order of the help.
    core: Sequence[Command] = ()

    @cached_property
    def table(self) -> dict[str, Command]:
        """The commands of the core and of the optional parts that are installed, by name.

        Cached, because the help looks up each command, and each search for entry points reads the
        metadata of all distributions.
        """
        commands = list(self.core)
        for found in entry_points(group=COMMANDS):
            # A distribution's metadata may name parts that are not installed.
            with suppress(ModuleNotFoundError):
                commands += found.load()
        return {command.name: command for command in commands}

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Lists the names of all commands, in the order of the help."""
        return list(self.table)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        """Describes a command for the help, without importing it."""
        command = self.table.get(cmd_name)
        if command is None:
            return None
        return TyperCommand(cmd_name, help=command.help, rich_help_panel=command.group)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        """Imports the called command; the table is only needed for commands outside the core."""
        core = {command.name: command for command in self.core}
        command = core.get(args[0]) or self.table.get(args[0])
        if command is None:
            return super().resolve_command(ctx, args)
        return command.name, command.load(), args[1:]


def part(name: str) -> Any:
    """Loads the function that an optional part adds to a core command.

    Raises:
        CradleError: If the part or one of its packages is not installed.
    """
    for found in entry_points(group=PARTS, name=name):
        try:
            return found.load()
        except ModuleNotFoundError as error:
            raise _missing(f"the optional part {name!r}", error, name) from None
    raise CradleError(f"the optional part {name!r} is not installed: install the whole package.")


def _missing(what: str, error: ModuleNotFoundError, extra: str) -> CradleError:
    how = f" Install it with `{paths.install_command(extra)}`." if extra else ""
    return CradleError(f"{what} needs the package {error.name}, which is not installed.{how}")
