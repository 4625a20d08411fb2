"""Benchmark results as a data frame."""

from __future__ import annotations

import json
from pathlib import Path

from cradle_lib.detection.runs.benchmark import benchmark_results

ROWS = [
    {"name": "one <generate>", "ratio": 13.5, "target": 12, "turns_per_second": 5.25,
     "peak_mb": 1800.4, "same_answers": 1.0, "note": "60 turns", "unheard_of": 3},
    {"name": "pace", "ratio": 0.59, "target": 0.6},
    {"name": "only a name"},
]  # fmt: skip


def test_each_comparison_is_a_row_with_its_verdict(tmp_path: Path) -> None:
    machine = {"processor": "x86", "cores": 2, "load_before": 0.1}
    content = {"machine": machine, "rows": ROWS, "caveat": "Once."}
    (tmp_path / "inference.json").write_text(json.dumps(content))
    frame = benchmark_results(folder=tmp_path)
    assert frame["name"].tolist() == ["one <generate>", "pace", "only a name"]
    assert frame["ratio"].tolist()[:2] == [13.5, 0.59]
    assert frame["reached"].tolist()[:2] == [True, False]
    assert frame.loc[2, "ratio":].isna().all()
    assert benchmark_results("training", tmp_path).columns.tolist() == frame.columns.tolist()
    assert frame.attrs == {
        "machine": "processor x86, cores 2, load before 0.1", "caveat": "Once."
    }  # fmt: skip
