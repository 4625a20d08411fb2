"""What a benchmark keeps for the book: rows of ratios, and the machine they were measured on."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

RESULTS: Final = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: What was measured.
        ratio: The measured ratio, in the direction in which more is better.
        target: The least that it should be.
        turns_per_second: Pace of the other contestant, or of ours where there is none; ``None``
            where no turns are answered.
        peak_mb: Its peak memory in millions of bytes; ``None`` where it is no matter.
        same_answers: Share of the turns that both were asked for which both said the same;
            ``None`` where nothing is compared.
        note: What the numbers were made of.
        group: What kind of comparison it is, where there are several.
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


def keep(name: str, rows: Sequence[Row], load: float, caveat: str = "") -> bool:
    """Prints rows, and keeps them with the machine that they were measured on.

    Args:
        name: Of the file, without its ending.
        rows: What was measured.
        load: Processes that were running before anything was measured, on average.
        caveat: What a reader of the numbers must know.

    Returns:
        Whether all targets were met.
    """
    for row in rows:
        said = "" if row.same_answers is None else f"same answers {row.same_answers:.1%}"
        verdict = "yes" if row.met else "NO"
        print(f"{row.name:<66} {row.ratio:7.2f}   at least {row.target:g}: {verdict}   {said}")
    machine = {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load_before": round(load, 2),
        "python": platform.python_version(),
        "measured": datetime.now(UTC).date().isoformat(),
    }
    kept = {"machine": machine} | ({"caveat": caveat} if caveat else {})
    kept["rows"] = [asdict(row) for row in rows]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")
    return all(row.met for row in rows)
