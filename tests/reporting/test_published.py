"""Published values, read a second time with pandas."""

from __future__ import annotations

import pandas as pd
import pytest

from cradle_lib import paths
from cradle_lib.errors import BookError
from cradle_lib.published import published_table
from cradle_lib.reporting import published as module
from cradle_lib.reporting.published import (
    SYSTEMS,
    published_cell,
    published_systems,
    reference_cell,
    reference_points,
)
from cradle_lib.reporting.tables import MISSING


def test_every_published_number_is_shown_as_it_is_printed() -> None:
    frame = pd.read_csv(paths.PUBLISHED / "published.csv", dtype=str, keep_default_na=False)
    for key, value in zip(frame["key"], frame["value"], strict=True):
        cell = published_cell(key)
        assert cell.value == float(value)
        assert float(cell.text.replace(",", "")) == float(value)


def test_what_the_text_does_not_state_is_a_dash() -> None:
    assert published_cell("result.turn.exact_match.claude").text == MISSING
    assert reference_cell("keyword", "turn", "micro_f1").text == MISSING


@pytest.mark.parametrize(
    ("key", "digits", "shown"),
    [
        ("result.turn.micro_f1.gpt-oss-120b", 2, "47.20"),
        ("corpus.turns", None, "8,975"),
        ("training.learning_rate", None, "5e-06"),
        ("corpus.mean_turns", None, "14.96"),
    ],
)
def test_published_numbers_keep_the_precision_of_the_paper(
    key: str, digits: int | None, shown: str
) -> None:
    assert published_cell(key, digits).text == shown


def test_every_system_with_a_published_score_has_a_name() -> None:
    keys = [
        key for key in published_table() if key.startswith(("result.", "errors.", "confusion."))
    ]
    # The last part may itself hold a dot, as in qwen2.5-72b; two keys give a range instead.
    unnamed = [k for k in keys if not any(k.endswith(f".{s}") for s in SYSTEMS)]
    assert unnamed == [
        "errors.alert_ongoing_to_si_passive_ongoing_low",
        "errors.alert_ongoing_to_si_passive_ongoing_high",
    ]


def test_systems_are_found_by_what_is_stated_about_them() -> None:
    # Sec 5: micro F1 and Jaccard; Sec 6: the highest dialogue-level recall.
    assert published_systems("result.dialogue.") == [
        "claude",
        "gemini",
        "qwen3-32b",
        "llama-4-scout-17b",
        "cradle-qwen3-32b",
    ]
    assert published_systems("result.nowhere.") == []


def test_reference_points_are_those_of_the_file() -> None:
    assert reference_cell("always-none", "turn", "exact_match").text == "84.47"
    assert reference_cell("tfidf", "turn", "micro_f1").text == "22.90"


def test_a_damaged_file_of_reference_points_is_named(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = paths.Path(str(tmp_path))
    (folder / "reference_points.csv").write_text("system,level,score,value,note\na,b,c,many,\n")
    monkeypatch.setattr(module.paths, "PUBLISHED", folder)
    reference_points.cache_clear()
    with pytest.raises(BookError, match=r"reference_points\.csv.*many"):
        reference_points()
    reference_points.cache_clear()
