"""Published values as frames, compared with the lines of their files."""

from __future__ import annotations

import csv
import math
import re

import pytest

from cradle_lib import paths
from cradle_lib.display.published_values import (
    PAPER_SYSTEMS,
    paper_models,
    published_frame,
    reference_points,
)
from cradle_lib.display.table import show
from cradle_lib.errors import BookError


def lines(name: str) -> list[dict[str, str]]:
    with (paths.PUBLISHED / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("pattern", "form", "ranges"),
    [
        ("result.{level}.{score}.{system}", r"result\.(?!per_label)\w+\.\w+\..+", 0),
        ("result.per_label_f1.{label}.{system}", r"result\.per_label_f1\.\w+\..+", 0),
        ("errors.{quantity}.{system}", r"errors\.\w+\..+", 0),
        ("confusion.{gold}.{predicted}.{system}", r"confusion\.\w+\.\w+\..+", 0),
        ("annotation.team{team}_{kind}_jaccard", r"annotation\.team\w+_jaccard_\w+", 4),
    ],
)
def test_every_published_number_is_in_a_frame_and_table(
    pattern: str, form: str, ranges: int
) -> None:
    frame = published_frame(pattern)
    if "level" in frame:
        frame = frame[frame["level"] != "per_label_f1"]
    stated = [line for line in lines("published.csv") if re.fullmatch(form, line["key"])]
    assert len(frame) + ranges == len(stated) > 0
    assert set(frame.get("system", ())) <= set(PAPER_SYSTEMS)
    names = re.findall(r"{(\w+)}", pattern)
    columns = [*names[1:-1], names[-1]] if len(names) > 1 else []
    table = show(frame, "Stated.", rows=names[0], columns=columns)
    shown = [cell.text for row in table.rows for cell in row if cell.published]
    assert sorted(shown) == sorted(frame["published"])


def test_numbers_are_shares_and_texts_are_as_in_the_paper() -> None:
    results = published_frame("result.turn.{score}.{system}").set_index(["score", "system"])
    for line in lines("published.csv"):
        if line["key"].startswith("result.turn."):
            row = results.loc[tuple(line["key"].split(".", 3)[2:])]
            assert 100 * row["number"] == pytest.approx(float(line["value"]))
            assert row["published"] == line["value"]
    assert results.loc[("micro_f1", "gpt-oss-120b"), "published"] == "47.20"
    kappa = published_frame("annotation.{what}").set_index("what").loc["kappa"]
    assert kappa["published"] == "0.51 to 0.75"
    assert math.isnan(kappa["number"])
    cells = published_frame("confusion.{gold}.{predicted}.{system}")
    assert {"27", "8"} <= {*cells["published"]}
    assert published_frame("corpus.{quantity}")["published"][1] == "8,975"
    assert published_frame("gain.{level}.{score}.{system}")["published"].tolist()[0] == "+7.56"


def test_reference_points_and_models_have_their_names() -> None:
    frame, stated = reference_points(), lines("reference_points.csv")
    assert [*frame["published"]] == [line["value"] for line in stated]
    assert [*frame["system"].unique()][:2] == ["Always none", "TF-IDF + logistic regression"]
    assert paper_models()["gpt-5.1"] == "GPT"
    assert {*paper_models().values()} == {*PAPER_SYSTEMS.values()}
    assert "tfidf" not in paper_models()


def test_a_pattern_without_a_match_is_refused() -> None:
    with pytest.raises(BookError, match=r"has a key like 'result\.\{a\}\.nothing'"):
        published_frame("result.{a}.nothing")
