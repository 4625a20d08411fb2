"""Runs commands in the process of the tests."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from cradle_lib.cli.main import app


def invoke(*words: str | Path) -> Result:
    """Runs ``cradle`` on a wide terminal; a CradleError is the result's ``exception``."""
    return CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "200"})
