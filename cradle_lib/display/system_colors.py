"""One colour for each system, on all pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cradle_lib.arguments import checked
from cradle_lib.display.theme import PALETTE


@checked
def system_colors(stored: Sequence[Any], shown: Sequence[Any]) -> dict[str, str]:
    """Gives each system a colour, which is the same on all pages with the same runs.

    Args:
        stored: The :class:`.Predictions` of the page, in the order of :func:`.stored_runs`.
        shown: Those that need a colour, under any name.

    Returns:
        Colours of the palette by the names in ``shown``. After ten systems colours repeat.
    """
    places = {run.files: place for place, run in enumerate(stored)}
    return {run.record.name: f"C{places[run.files] % len(PALETTE)}" for run in shown}
