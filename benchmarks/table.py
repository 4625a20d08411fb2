"""What a benchmark prints: one line for each thing measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One line of the table: what was measured, and the target it was measured against."""

    what: str
    ours: str
    theirs: str
    result: str
    target: str
    met: bool


def show(what: str, others: str, lines: Sequence[Line]) -> bool:
    """Prints a table.

    Args:
        what: What was measured.
        others: What it was measured against.
        lines: The lines.

    Returns:
        Whether all targets were met.
    """
    table = [(what, "cradle_lib", others, "result", "target", "met")]
    table += [
        (line.what, line.ours, line.theirs, line.result, line.target, "yes" if line.met else "NO")
        for line in lines
    ]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
    return all(line.met for line in lines)
