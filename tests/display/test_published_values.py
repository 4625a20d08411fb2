"""Published values as columns, compared with the lines of the file they come from."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from cradle_lib import paths
from cradle_lib.display.published_values import (
    published_frame,
    with_published,
)
from cradle_lib.display.reference_points import reference_points
from cradle_lib.display.systems import PAPER_SYSTEMS
from cradle_lib.display.table import show
from cradle_lib.errors import BookError


def lines(name: str) -> list[dict[str, str]]:
    with (paths.PUBLISHED / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_result_of_the_file_is_in_the_frame_as_a_share() -> None:
    frame = published_frame("result.turn.{score}.{system}")
    stated = {
        tuple(line["key"].split(".", 3)[2:]): float(line["value"])
        for line in lines("published.csv")
        if line["key"].startswith("result.turn.")
    }
    keys = zip(frame["score"], frame["system"], strict=True)
    assert dict(zip(keys, 100 * frame["published"], strict=True)) == pytest.approx(stated)
    assert ("micro_f1", "qwen2.5-72b") in stated
    assert set(frame["system"]) <= set(PAPER_SYSTEMS)
    assert set(frame["unit"]) == {"share"}


def test_two_ends_of_a_range_are_one_row() -> None:
    frame = published_frame("annotation.{what}").set_index("what")
    ends = {
        line["key"].rpartition("_")[2]: float(line["value"])
        for line in lines("published.csv")
        if line["key"].startswith("annotation.kappa_")
    }
    row = frame.loc["kappa"]
    assert (row["published_low"], row["published_high"]) == (ends["low"], ends["high"])
    assert math.isnan(row["published"])
    assert row["unit"] == "number"


def test_reference_points_are_shares() -> None:
    frame, stated = reference_points(), lines("reference_points.csv")
    assert [*(100 * frame["published"])] == pytest.approx([float(x["value"]) for x in stated])
    assert [*frame["system"]] == [x["system"] for x in stated]


def test_published_values_stand_beside_the_rows_they_belong_to() -> None:
    frame = pd.DataFrame(
        {
            "system": pd.Categorical(["tfidf", "claude", "claude"], ["claude", "tfidf"]),
            "level": "turn",
            "score": ["micro_f1", "micro_f1", "jaccard"],
            "value": [0.2, 0.3, 0.4],
        },
        index=[7, 8, 9],
    )
    frame.attrs["signature"] = "s"
    before = frame.copy(deep=True)
    made = with_published(frame, "result.{level}.{score}.{system}")
    paper = {line["key"]: line["value"] for line in lines("published.csv")}
    expected = [np.nan, float(paper["result.turn.micro_f1.claude"]) / 100, np.nan]
    np.testing.assert_allclose(made["published"], expected)
    pd.testing.assert_frame_equal(made.drop(columns=["published", "published_digits"]), before)
    pd.testing.assert_frame_equal(frame, before)
    assert made.attrs == {"signature": "s"}

    measured = reference_points()
    row = measured[(measured["system"] == "tfidf") & (measured["score"] == "micro_f1")]
    both = with_published(made, measured)
    share = float(row[row["level"] == "turn"]["published"].iloc[0])
    np.testing.assert_allclose(both["published"], [share, *expected[1:]])


def test_systems_that_were_not_run_can_be_added() -> None:
    frame = pd.DataFrame(
        {"system": ["Claude"], "level": ["turn"], "score": ["micro_f1"], "value": [0.3]}
    )
    frame.attrs["signature"] = "s"
    stated = published_frame("result.{level}.{score}.{system}").replace(
        {"system": dict(PAPER_SYSTEMS)}
    )
    made = with_published(frame, stated, others=True)
    paper = [
        line["key"].split(".", 3)[3]
        for line in lines("published.csv")
        if line["key"].startswith("result.turn.micro_f1.")
    ]
    assert [*made["system"]] == [
        "Claude",
        *(PAPER_SYSTEMS[key] for key in paper if key != "claude"),
    ]
    assert made["published"].notna().all()
    assert made["value"].notna().sum() == 1
    assert set(made["score"]) == {"micro_f1"}
    assert made.attrs == {"signature": "s"}


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [
        ("result.{level}.{score}.{system}", "47.20"),
        ("annotation.{team}_{kind}_jaccard", "0.67 to 1.00"),
        ("confusion.{gold}.{tag}.{system}", "20"),
    ],
)
def test_what_is_published_keeps_the_zeros_with_which_it_is_printed(
    pattern: str, shown: str
) -> None:
    frame = published_frame(pattern)
    rows = [name for name in frame.columns if name not in ("published", "published_low")][:3]
    frame = frame.assign(value=math.nan)
    names = [x for x in rows if not x.startswith(("published", "unit", "where", "note"))]
    table = show(frame, "Stated.", rows=names[0], columns=names[1:] or "unit")
    assert shown in {cell.text for row in table.grid.rows for cell in row}


def test_what_only_follows_stands_beside_with_its_mark() -> None:
    derived = pd.DataFrame(
        {"system": ["one", "two"], "derived": [0.123, 0.5], "derived_low": [math.nan, 0.25]}
    ).assign(derived_high=[math.nan, 0.75], score="micro_f1")
    stated = pd.DataFrame({"score": "micro_f1", "system": ["three"], "published": [0.4]})
    frame = pd.DataFrame({"system": ["three"], "score": ["micro_f1"], "value": [0.3]})
    made = with_published(frame, pd.concat([stated, derived]), others=True)
    table = show(made, "All.", rows="system", columns="score", published="rows")
    cells = {row[0].text: row[1] for row in table.grid.rows}
    assert cells["one \N{DOUBLE DAGGER}"].text == "12.30\N{DAGGER}"
    assert cells["two \N{DOUBLE DAGGER}"].text == "25.00 to 75.00\N{DAGGER}"
    assert cells["three \N{DOUBLE DAGGER}"].text == "40"
    assert [cells[f"{name} \N{DOUBLE DAGGER}"].derived for name in ("one", "three")] == [
        True,
        False,
    ]


def test_every_system_with_a_published_score_has_a_name() -> None:
    keys = [
        line["key"]
        for line in lines("published.csv")
        if line["key"].startswith(("result.", "errors.", "confusion."))
    ]
    # The last part may itself hold a dot, as in qwen2.5-72b; two keys give a range instead.
    unnamed = [k for k in keys if not any(k.endswith(f".{s}") for s in PAPER_SYSTEMS)]
    assert unnamed == [
        "errors.alert_ongoing_to_si_passive_ongoing_low",
        "errors.alert_ongoing_to_si_passive_ongoing_high",
    ]


@pytest.mark.parametrize(
    ("pattern", "gain"),
    [
        ("result.{level}.{score}.{system}", 1),
        ("result.per_label_f1.{label}.{system}", 0),
        ("errors.{quantity}.{system}", 0),
        ("confusion.{gold}.{tagged}.{system}", 0),
    ],
)
def test_no_published_number_is_lost_on_the_way_to_a_page(pattern: str, gain: int) -> None:
    stated = published_frame(pattern)
    names = [name for name in stated.columns if f"{{{name}}}" in pattern]
    # A run that nobody published anything of, with every cell that a page may show.
    cells = stated[names].assign(system="mine", value=0.5)
    cells = cells[~cells.get("score", cells["system"]).str.contains("gain")].drop_duplicates()
    made = with_published(cells, pattern, others=True)
    shown = made[made["published"].notna()]
    prefix = pattern.split("{")[0]
    parts = pattern.count("}")
    keys = [line for line in lines("published.csv") if line["key"].startswith(prefix)]
    keys = [k for k in keys if k["key"].removeprefix(prefix).count(".") >= parts - 1]
    if parts == 3 and prefix == "result.":
        keys = [k for k in keys if not k["key"].startswith("result.per_label_f1.")]
        shown = shown[shown["level"] != "per_label_f1"]
    assert len(shown) == len(keys) - gain
    assert set(shown["system"]) <= set(PAPER_SYSTEMS.values())


def test_a_damaged_file_of_reference_points_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "system,level,score,value,note\na,b,c,many,\n"
    (tmp_path / "reference_points.csv").write_text(text, encoding="utf-8")
    monkeypatch.setattr(paths, "PUBLISHED", tmp_path)
    with pytest.raises(BookError, match=r"reference_points\.csv.*many"):
        reference_points()


def test_a_model_is_found_by_its_name_in_the_registry() -> None:
    # models.yml calls the paper's Claude by its version, and says that its numbers are Claude's.
    registry = yaml.safe_load((paths.ROOT / "models.yml").read_text(encoding="utf-8"))
    name = next(entry["name"] for entry in registry.values() if entry.get("published") == "claude")
    assert name != "Claude"
    frame = pd.DataFrame(
        {"system": [name, registry["tfidf"]["name"]], "level": "turn", "score": "micro_f1"}
    )
    made = with_published(frame, "result.{level}.{score}.{system}", others=True)
    paper = {line["key"]: line["value"] for line in lines("published.csv")}
    assert 100 * made["published"][0] == pytest.approx(float(paper["result.turn.micro_f1.claude"]))
    assert [*made["system"][:2]] == [*frame["system"]]
    assert set(made["system"][2:]) < set(PAPER_SYSTEMS.values()) - {"Claude"}
    both = with_published(frame, reference_points())
    assert both["published"].isna().tolist() == [True, False]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(BookError, match=r"states nothing under 'result\.\{a\}\.nothing'"):
        published_frame("result.{a}.nothing")
    with pytest.raises(BookError, match="names no column in braces"):
        published_frame("corpus.turns")
    with pytest.raises(BookError, match="has no column 'level', 'score' to match by"):
        with_published(pd.DataFrame({"system": ["gpt"]}), "result.{level}.{score}.{system}")
