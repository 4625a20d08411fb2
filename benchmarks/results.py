"""Results of benchmarks, saved for the book: rows of ratios, and the machine."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.size import SMALL

RESULTS: Final = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: The measured quantity.
        ratio: The measured ratio; more is better.
        target: Minimum of the ratio.
        turns_per_second: Speed of the other contestant, or of ours if there is none; ``None``
            if no turns are answered.
        peak_mb: Peak memory of the same contestant in millions of bytes; ``None`` if irrelevant.
        same_answers: Share of the turns answered by both for which the answers are equal;
            ``None`` if no answers are compared.
        note: Details of the measurement.
        group: Kind of comparison, if the benchmark has several.
    """

    name: str
    ratio: float
    target: float
    turns_per_second: float | None = None
    peak_mb: float | None = None
    same_answers: float | None = None
    note: str = ""
    group: str | None = None

    @property
    def met(self) -> bool:
        """Whether the target was reached."""
        return self.ratio >= self.target


def save(name: str, rows: Sequence[Row], load: float, caveat: str = "") -> bool:
    """Prints rows, and saves them with a description of the machine.

    Args:
        name: File name, without its extension.
        rows: The measurements.
        load: Average number of running processes before the measurement.
        caveat: A limitation that readers of the numbers must know.

    Returns:
        Whether all targets were met. A small run is printed only.
    """
    for row in rows:
        same = "" if row.same_answers is None else f"same answers {row.same_answers:.1%}"
        verdict = "yes" if row.met else "NO"
        print(f"{row.name:<66} {row.ratio:7.2f}   at least {row.target:g}: {verdict}   {same}")
    if SMALL:
        return True
    machine = {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load_before": round(load, 2),
        "python": platform.python_version(),
        "measured": datetime.now(UTC).date().isoformat(),
    }
    content = {"machine": machine} | ({"caveat": caveat} if caveat else {})
    content["rows"] = [asdict(row) for row in rows]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
    return all(row.met for row in rows)
