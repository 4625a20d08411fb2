"""Tables of what was measured and what is calculated, and the picture of the cache."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Journal, Outcome, Prediction
from cradle_lib.errors import BookError
from cradle_lib.record import Record
from cradle_lib.reporting.cache_figure import cache_figure
from cradle_lib.reporting.figures import WIDTH
from cradle_lib.reporting.notice import Notice
from cradle_lib.reporting.speed_tables import arithmetic_table, assumption_table, bench_table
from cradle_lib.reporting.tables import Table

ROWS = [
    {"name": "one <generate>", "ratio": 13.5, "target": 12, "turns_per_second": 5.25,
     "peak_mb": 1800.4, "same_answers": 1.0, "note": "60 turns", "unheard_of": 3},
    {"name": "roofline", "ratio": 0.59, "target": 0.6},
    {"name": "only a name"},
]  # fmt: skip


def written(tmp_path: Path, content: Any) -> Path:
    path = tmp_path / "inference.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return tmp_path


def shown(table: Table | Notice) -> list[list[str]]:
    assert isinstance(table, Table)
    return [[cell.text for cell in row.cells] for row in table.rows]


def test_measurements_are_shown_with_their_targets_and_their_machine(tmp_path: Path) -> None:
    machine = {"processor": "x86", "cores": 2, "load_before": 0.1}
    table = bench_table(folder=written(tmp_path, {"machine": machine, "rows": ROWS, "more": []}))
    assert shown(table) == [
        ["one <generate>", "13.50", "12.00", "yes", "5.25", "1,800", "100.0", "60 turns"],
        ["roofline", "0.59", "0.60", "no", "–", "–", "–", "–"],  # noqa: RUF001
        ["only a name", "–", "–", "–", "–", "–", "–", "–"],  # noqa: RUF001
    ]
    assert isinstance(table, Table)
    assert table.notes == ("Machine: processor x86, cores 2, load before 0.1.",)
    assert "one &lt;generate&gt;" in table._repr_html_()


@pytest.mark.parametrize("what", ["inference", "services"])
def test_what_ships_is_shown_with_its_own_caption(what: str) -> None:
    table = bench_table(what)
    assert isinstance(table, Table)
    kept = json.loads((paths.BENCH_RESULTS / f"{what}.json").read_text())
    assert [row.cells[0].text for row in table.rows] == [row["name"] for row in kept["rows"]]
    assert ("wave" in table.caption) == (what == "inference")


def test_a_bare_list_of_rows_is_enough(tmp_path: Path) -> None:
    table = bench_table(folder=written(tmp_path, ROWS))
    assert len(shown(table)) == 3
    assert isinstance(table, Table)
    assert table.notes == ("Machine: not described.",)
    told = bench_table(folder=written(tmp_path, {"machine": "two cores", "rows": []}))
    assert isinstance(told, Table)
    assert told.notes == ("Machine: two cores.",)


def test_a_page_without_measurements_says_so(tmp_path: Path) -> None:
    notice = bench_table("services", tmp_path)
    assert isinstance(notice, Notice)
    assert "`make bench`" in notice.message


@pytest.mark.parametrize("content", ["{", "3", {"rows": 3}, {"rows": [{"ratio": 2}]}, {}])
def test_a_damaged_file_is_named_in_one_line(tmp_path: Path, content: Any) -> None:
    with pytest.raises(BookError, match=r"inference\.json: .*Make it anew: `make bench`") as error:
        bench_table(folder=written(tmp_path, content))
    assert "\n" not in str(error.value)


def test_what_is_calculated_says_so_and_rests_on_a_journal(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    monkeypatch.setattr(paths, "SHIPPED_RUNS", tmp_path / "shipped")
    missing = arithmetic_table(corpus, "smollm2-135m-constrained")
    assert isinstance(missing, Notice)
    assert "has not been run over" in missing.message
    record = Record.create(
        model="smollm2-135m-constrained", name="M", group="embedded", engine="wave",
        prompt="turn", prompt_hash="0" * 16, decoding={}, corpus=corpus.name,
        corpus_fingerprint=corpus.fingerprint,
    )  # fmt: skip
    path = tmp_path / corpus.name / "smollm2-135m-constrained.jsonl"
    with Journal.open(path, record) as journal:
        for turn in range(4):
            sizes = (2000 + 100 * turn, 2000 + 100 * turn - 60, 5)
            journal.append(Prediction("d0001", turn, "", "", 0, Outcome.OK, None, *sizes))
    table = arithmetic_table(corpus, "smollm2-135m-constrained")
    assert isinstance(table, Table)
    assert table.caption.startswith("Calculated, not measured: Qwen3-32B in bfloat16 on one H200")
    slow, quick, ratio = table.rows
    # 2,000 to 2,300 tokens and 4 x 4 of answers; 60 new ones each and the prefix of 1,940 once.
    assert slow.cells[1].value == 8600 + 16
    assert quick.cells[1].value == 4 * 60 + 16 + 1940
    assert ratio.cells[1].text == f"{8616 / 2196:.1f}"
    # One dialogue alone can't share the weights: 5 passes a turn, and as many one by one.
    assert quick.cells[0].text == "Waves of 1"
    assert slow.cells[5].text == "20"
    assert "8,600 of prompts, 20 of answers; 1,940 tokens are the same" in table.notes[0]


def test_every_input_of_the_calculation_is_shown() -> None:
    values = {row.cells[0].text: row.cells[1].text for row in assumption_table().rows}
    assert values["Layers"] == "64"
    assert values["Intermediate size"] == "25,600"
    assert values["Bytes of memory (10^9)"] == "141"


def test_the_picture_of_the_cache_fits_a_phone_and_reads_the_same_in_both_themes() -> None:
    figure = cache_figure()
    light, dark = (ElementTree.fromstring(svg) for svg in (figure.light, figure.dark))
    words = [
        ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
        for root in (light, dark)
    ]
    assert words[0] == words[1]
    assert {"in the cache", "computed now", "rolled back later", "1", "2", "3"} <= set(words[0])
    width, height = (float(str(light.get(side)).removesuffix("pt")) for side in ("width", "height"))
    assert width == pytest.approx(72 * WIDTH)
    assert not figure.wide
    for node in light.iter("{http://www.w3.org/2000/svg}use"):
        assert 0 <= float(node.get("x", 0)) <= width
        assert 0 <= float(node.get("y", 0)) <= height
