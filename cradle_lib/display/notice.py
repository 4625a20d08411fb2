"""A sentence in place of something that a page can't show."""

from __future__ import annotations

from dataclasses import dataclass

from cradle_lib.display.cells import with_code


@dataclass(frozen=True, slots=True)
class Notice:
    """Says what is missing, and how to get it.

    Attributes:
        message: Plain text, never markup; text between backticks is shown as code.
    """

    message: str

    def _repr_html_(self) -> str:
        return f'<div class="cradle-note" role="note"><p>{with_code(self.message)}</p></div>'

    def __repr__(self) -> str:
        """The message alone."""
        return self.message
