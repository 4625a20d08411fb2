"""A calculator of a day's alarms, with sliders: :func:`show_daily_alarms`.

CSS classes: ``cradle-calculator`` (the form), ``cradle-sliders``.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final

import pandas as pd

from cradle_lib.arguments import checked
from cradle_lib.display.notice import Notice, lacks
from cradle_lib.published import published_table

_HERE: Final = Path(__file__).parent
_COLUMNS: Final = ["system", "threshold", "found", "early", "false"]
_TITLES: Final = {
    "conversations": "Conversations a day",
    "share": "Share with a disclosure",
    "minutes": "Minutes per review",
}
_VALUES: Final = {
    "conversations": (10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000),
    "share": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    "minutes": (1, 2, 3, 5, 10, 15, 20, 30),
}


@dataclass(frozen=True)
class Calculator:
    """The calculator of a page.

    Attributes:
        rates: The result of :func:`.alarm_rates`; the first system is chosen at the beginning.
        start: Where the sliders begin: ``conversations``, ``share`` and ``minutes``.
    """

    rates: pd.DataFrame
    start: Mapping[str, float]

    def _repr_html_(self) -> str:
        systems: dict[str, list[list[float | None]]] = {}
        for name, threshold, *shares in self.rates[_COLUMNS].itertuples(index=False):
            own = math.isnan(threshold)
            systems.setdefault(name, []).append([None if own else threshold, *shares])
        return Template(_read("html")).substitute(
            systems=html.escape(json.dumps(systems)),
            options="".join(f"<option>{html.escape(name)}</option>" for name in systems),
            sliders="\n".join(map(self._slider, _TITLES)),
            script=_read("js"),
        )

    def _slider(self, name: str) -> str:
        values = sorted({*_VALUES[name], self.start[name]})
        if name == "share":
            # The share in the paper's test split comes last.
            table = published_table()
            neither = table["corpus.dialogues_with_neither"].value
            values.append(round(1 - neither / table["corpus.dialogues"].value, 3))
        return (
            f'<label>{_TITLES[name]} <input type="range" name="{name}" max="{len(values) - 1}" '
            f'value="{values.index(self.start[name])}" data-values="{values}"> '
            "<output></output></label>"
        )

    def __repr__(self) -> str:
        return f"Calculator of a day's alarms for {self.rates['system'].nunique()} systems"


@checked
def show_daily_alarms(rates: pd.DataFrame, start: Mapping[str, float]) -> Calculator | Notice:
    """Shows how many alarms a system would raise in a day, with sliders for the circumstances.

    Args:
        rates: The result of :func:`.alarm_rates`. The first system is chosen at the beginning.
        start: Where the sliders begin: the arguments ``conversations``, ``share`` and ``minutes``
            of :func:`.daily_alarms`.

    Returns:
        The calculator; a notice if the corpus has too few dialogues with, or too few without, gold
        labels.
    """
    usable = rates.dropna(subset=["found", "false"])
    missing = lacks("gold or none")
    if missing is not None or usable.empty:
        few = "There are fewer than 20 dialogues with, or without, gold labels: too few for rates."
        return Notice(missing or few)
    return Calculator(usable, start)


def _read(suffix: str) -> str:
    return (_HERE / f"calculator.{suffix}").read_text(encoding="utf-8")
