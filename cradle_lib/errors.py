"""The exceptions of the project.

Every error that a user can cause is a :class:`CradleError`. Its message says where the problem is,
what was found, what was expected and what to do next. The command line prints it without a
traceback.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Self

#: Maximum length of a message in characters; messages may quote files.
LONGEST: Final = 2_000


class CradleError(Exception):
    """Base of all errors that the library raises on purpose.

    Args:
        problem: What was found and what was expected.
        path: The file, if there is one.
        row: Zero-based row of the table, if the problem is in one.
        hint: What to do next.

    The message is made safe and short by :func:`printable`.
    """

    def __init__(
        self,
        problem: str = "",
        *,
        path: str | Path | None = None,
        row: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.problem, self.path, self.row, self.hint = problem, path, row, hint
        places = [str(path)] if path else []
        places += [] if row is None else [f"row {row}"]
        message = f"{', '.join(places)}: {problem}" if places else problem
        end = "" if message.endswith("?") else "."
        super().__init__(printable(f"{message.rstrip('.')}{end} {hint}" if hint else message))

    def located(self, path: str | Path | None = None, row: int | None = None) -> Self:
        """Copies the error with a path or row added."""
        path, row = self.path if path is None else path, self.row if row is None else row
        return type(self)(self.problem, path=path, row=row, hint=self.hint)


class ArgumentError(CradleError, TypeError, ValueError):
    """An argument of a function that is unknown or missing, or has a wrong type or value."""


class CorpusError(CradleError, ValueError):
    """Dialogues, labels or annotations that can't be read, or do not fit each other."""


class RegistryError(CradleError, ValueError):
    """A model, a prompt template or a setting that does not exist or can't be used."""


class JournalError(CradleError, ValueError):
    """A journal, bundle or log that does not fit the run, the corpus, or its own format."""


class NoRunError(JournalError):
    """A run that does not exist, or has not completed any dialogue yet."""


class EngineError(CradleError, RuntimeError):
    """A model that can't start or continue: missing weights, package, key, memory or cluster."""


class ScoringError(CradleError, ValueError):
    """Predictions and gold labels that can't be scored as asked."""


class BookError(CradleError, RuntimeError):
    """A page of the book that can't be brought up to date."""


def printable(text: str, most: int = LONGEST) -> str:
    """Escapes control characters and truncates long text, for a terminal or a page.

    Line breaks and tabs are kept. Other invisible characters (terminal escapes, bidirectional
    marks, lone surrogates) are written as Python escapes. A text of more than ``most`` characters
    is shortened in the middle.
    """
    if len(text) > most:
        half = most // 2
        text = f"{text[:half]} [{len(text) - 2 * half:,} characters left out] {text[-half:]}"
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text
    )
