"""The simulation behind the shipped table of interval coverage."""

from __future__ import annotations

from pathlib import Path

import pytest

from cradle_lib import interval_coverage
from tools.interval_coverage import FILE, write


def test_rare_labels_are_covered_by_wilson_and_not_by_percentile_intervals() -> None:
    table = interval_coverage()
    alone = table[table["per_dialogue"] == 1].pivot(index="gold", columns="method", values="value")
    assert alone["wilson"].between(0.93, 0.98).all()
    assert alone.loc[4, "percentile"] < 0.85
    # Clustered occurrences are covered less often than 95 %.
    [clustered] = table.query("per_dialogue == 3 and method == 'wilson'")["value"]
    assert 0.90 < clustered < 0.94


@pytest.mark.shipped
def test_the_program_reproduces_the_shipped_table(tmp_path: Path) -> None:
    write(tmp_path / FILE.name)
    assert (tmp_path / FILE.name).read_bytes() == FILE.read_bytes()
