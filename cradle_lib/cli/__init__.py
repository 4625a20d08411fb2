"""The command line: thin commands over the library."""

from cradle_lib.cli.main import main

__all__ = ["main"]
