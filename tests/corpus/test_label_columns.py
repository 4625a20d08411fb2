"""Labels in users' files: converted under any spelling, or refused with the option that decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cradle_lib.corpus import convert
from cradle_lib.errors import CorpusError
from cradle_lib.labels import LABELS, format_mask

HEAD = "dialogue_id,speaker,text,"
FLAGS = {"alert_past": True, "SH: past": False}


def table(columns: str, first: object, second: str | None = None) -> str:
    """A table of two messages with the cells of further columns."""
    second = "," * columns.count(",") if second is None else second
    return f"{HEAD}{columns}\nd,user,a,{first}\nd,bot,b,{second}\n"


def chat(about: dict[str, Any] | None = None, **fields: Any) -> str:
    said = [{"role": "user", "content": "a"} | fields, {"role": "assistant", "content": "b"}]
    return json.dumps({"messages": said} | (about or {}))


def labels(content: str, folder: Path, **options: Any) -> list[str]:
    path = folder / ("x.jsonl" if content.startswith("{") else "x.csv")
    path.write_text(content)
    return [format_mask(turn.mask) for turn in convert(path, **options).corpus.turns]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (table("Label", '"Alert: ongoing; self-harm (past)"'), "alert_ongoing; confirm_SH_past"),
        (table("alert_past,SH past?,DV_o", "1,0,x", ",,"), "alert_past; confirm_DV_ongoing"),
        (table("alert_past,labels_count", "yes,1", "no,0"), "alert_past"),
        (table(",".join(LABELS), "True" + ",False" * 15, "False" + ",0" * 15), "alert_ongoing"),
        (chat(labels=["alert_past", "SH_p"]), "alert_past; confirm_SH_past"),
        (chat(labels=FLAGS), "alert_past"),
        (chat(labels={"crisis": FLAGS}), "alert_past"),
    ],
)
def test_labels_are_converted(content: str, expected: str, tmp_path: Path) -> None:
    assert labels(content, tmp_path) == [expected, "none"]


# The content, and a column that decides, with the label that it has.
LOST: dict[str, tuple[str, str | None]] = {
    **{
        f"{spelling} as {column}": (table(column, spelling), column)
        for spelling in ("alert_past", "Alert: past", "ALERT-PAST", "alertPast", "past alert")
        for column in ("annotation", "code", "Label (gold)")
    },
    **{
        f"{part} alone": (table("code", part), None)
        for part in ("confirm_SH", "si_active", "alert", "DV", "self-harm", "Suicide")
    },
    "a usual name": (table("category", "3"), None),
    "a vector": (chat(labels=[0, 1, 0]), None),
    "second annotator": (table("labels,second", "alert_past,SH_past"), "labels"),
    "empty labels": (table("labels,code", "none,DV"), None),
    "a share": (table("alert_past", "0.7"), None),
    "columns and labels": (table("label,SH_past", "alert_past,1"), "label"),
    "two columns": (table("label_1,label_2", "alert_past,"), "label_1"),
    "inner field": (chat(meta={"code": "alert past"}), "meta.code"),
    "inner list": (chat(meta=[{"code": "alert past"}]), None),
    "in a remark": (table("remark", "changed from alert_past to none"), None),
    "of the dialogue": (chat({"label": "alert_past"}), None),
    "flags of the dialogue": (chat({"alert_past": 1}), None),
}


@pytest.mark.parametrize("name", LOST)
def test_labels_are_not_lost_without_a_decision(name: str, tmp_path: Path) -> None:
    content, column = LOST[name]
    with pytest.raises(CorpusError, match="--no-labels"):
        labels(content, tmp_path)
    assert labels(content, tmp_path, labels="none") == ["none", "none"]
    if column:
        assert labels(content, tmp_path, labels=column) == ["alert_past", "none"]


@pytest.mark.parametrize(
    "content",
    [
        table("note", '"She was alert in the past, and asked about the bus."'),
        table("state,labels", "CA,alert_past"),
        table("topic", "child"),
        table("topic", "past"),
        table("topic", "user"),
        table("category", ""),
        chat(score=3, done=True),
    ],
)
def test_other_columns_are_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(content)
    assert convert(path).understood["other columns"] != "none"


@pytest.mark.parametrize(
    ("columns", "cells", "expected"),
    [
        ("Label 1,Label 2", "alert_past,SH_past", "alert_past; confirm_SH_past"),
        ("Alert,Confirm", "none,SH_past", "confirm_SH_past"),
        ("alert_past,SH_past,note", "1,0,", "alert_past"),
        ("alert_past,code", "1,SH_past", "alert_past; confirm_SH_past"),
    ],
)
def test_several_columns_are_joined(
    columns: str, cells: str, expected: str, tmp_path: Path
) -> None:
    content, names = table(columns, cells), columns.split(",")[:2]
    assert labels(content, tmp_path, labels=names) == [expected, "none"]
    told = convert(tmp_path / "x.csv", labels=names).understood["labels"]
    assert told.endswith(f"(in {' and '.join(names)})")


def test_columns_that_were_not_chosen_are_named(tmp_path: Path) -> None:
    content = table("Label 1,Label 2,note", "alert_past,SH_past,bus")
    with pytest.raises(CorpusError, match="--labels COLUMN, once for each"):
        labels(content, tmp_path)
    found = convert(tmp_path / "x.csv", labels="Label 1")
    assert found.understood["labels"] == "1 (in Label 1; left out: Label 2)"


def test_labels_in_a_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="row 0: the text ends with its labels"):
        labels(table("note", "").replace(",a,", ",a TAG: SH_past,"), tmp_path)
