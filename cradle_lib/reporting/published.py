"""Cells for what the paper states, to stand beside what was found.

A value that the paper's text does not state is a dash on the page: no number was read
off a picture or guessed.

References:
    CRADLE-Dialogue (arXiv 2606.10380); ``data/published/README.md``.
"""

from __future__ import annotations

from cradle_lib.published import published
from cradle_lib.reporting.tables import MISSING, Cell


def published_cell(key: str, digits: int | None = None) -> Cell:
    """Makes the cell of a published number.

    Args:
        key: Its key in ``published.csv``.
        digits: Decimals shown; as many as the number has if ``None``.

    Returns:
        The number in the unit that the paper uses, or a dash.
    """
    value = published(key)
    if value is None:
        return Cell(MISSING)
    return Cell(f"{value:,.{digits}f}" if digits is not None else f"{value:,.10g}", value=value)
