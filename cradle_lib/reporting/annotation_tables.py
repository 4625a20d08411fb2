"""The table of the labelling interface."""

from __future__ import annotations

from cradle_lib.annotation.interface import DEFINITIONS, HOTKEYS, meaning, title
from cradle_lib.labels import LABELS
from cradle_lib.reporting.tables import Column, Row, Table, text


def interface_table() -> Table:
    """Lists what the interface offers: a button for each key, and what it stands for."""
    rows = [
        Row(
            (
                text(title(ongoing).removesuffix(": ongoing")),
                text(HOTKEYS[ongoing]),
                text(HOTKEYS[past]),
                text(meaning(ongoing)),
            )
        )
        for ongoing, past in zip(LABELS[::2], LABELS[1::2], strict=True)
    ]
    return Table(
        "Labels of the interface, their keys, and what an annotator is told about them.",
        tuple(Column(name, "text") for name in ("Button", "Ongoing", "Past", "Meaning")),
        tuple(rows),
        tuple(f"{state.capitalize()}: {DEFINITIONS[state]}" for state in ("ongoing", "past")),
    )
