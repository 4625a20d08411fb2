"""One result out of several, chosen by the reader: :func:`choose`.

CSS classes: ``cradle-choice`` (the box), ``cradle-choice-name`` (a name, hidden by the script).
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from cradle_lib.arguments import checked
from cradle_lib.display.cells import clean
from cradle_lib.display.notice import Notice


@runtime_checkable
class Shown(Protocol):
    """A result that a page shows, such as a table or a figure."""

    def _repr_html_(self) -> str: ...


@dataclass(frozen=True)
class Choice:
    """Several results of which a page shows one at a time.

    Attributes:
        label: Name of the choice, such as ``System``.
        shown: The results by name, in the order of the list.
    """

    label: str
    shown: Mapping[str, Shown]

    def _repr_html_(self) -> str:
        # The list is hidden until a script shows it; without scripts all results are visible.
        options = "".join(f"<option>{html.escape(name)}</option>" for name in self.shown)
        parts = "".join(
            f'<div role="group" aria-label="{html.escape(name)}">'
            f'<p class="cradle-choice-name">{html.escape(name)}</p>{result._repr_html_()}</div>'
            for name, result in self.shown.items()
        )
        return (
            f'<div class="cradle-choice"><label hidden>{html.escape(self.label)} '
            f"<select>{options}</select></label>{parts}</div>"
        )

    def __repr__(self) -> str:
        """All results in plain text, each below its name."""
        return "\n\n".join(f"{name}\n{result!r}" for name, result in self.shown.items())


@checked
def choose(label: str, shown: Mapping[str, Shown]) -> Choice | Notice:
    """Shows one of several tables or figures, which the reader chooses from a list.

    Args:
        label: Name of the choice, such as ``System``.
        shown: The results of :func:`.show` or :func:`.show_figure` by name. The first is open.
            A page without scripts shows all of them, one below the other.

    Returns:
        The choice; a notice if there is nothing to choose from.
    """
    if not shown:
        return Notice("Nothing to choose from: there is no result.")
    return Choice(clean(label), {clean(name): result for name, result in shown.items()})
