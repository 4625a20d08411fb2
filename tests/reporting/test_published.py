"""Published values, read a second time with pandas."""

from __future__ import annotations

import pandas as pd
import pytest

from cradle_lib import paths
from cradle_lib.reporting.published import published_cell
from cradle_lib.reporting.tables import MISSING


def test_every_published_number_is_shown_as_it_is_printed() -> None:
    frame = pd.read_csv(paths.PUBLISHED / "published.csv", dtype=str, keep_default_na=False)
    for key, value in zip(frame["key"], frame["value"], strict=True):
        cell = published_cell(key)
        assert cell.value == float(value)
        assert float(cell.text.replace(",", "")) == float(value)


def test_what_the_text_does_not_state_is_a_dash() -> None:
    assert published_cell("result.turn.exact_match.claude").text == MISSING


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
