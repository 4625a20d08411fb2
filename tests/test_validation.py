"""Faults in files are described in plain words, never in Pydantic's."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from cradle_extras.label_studio.exports import _Task
from cradle_extras.label_studio.study import Study
from cradle_extras.training.recipe import Recipe
from cradle_extras.training.record import TrainingRecord
from cradle_lib.book.plan import _Plan
from cradle_lib.detection import Model
from cradle_lib.record import Record
from cradle_lib.validation import faults

KINDS = (Model, Record, _Plan, Recipe, Study, TrainingRecord, _Task)
PYDANTIC = re.compile(r"Input |Extra |required|should |unable |instance|\bInvalid")

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=15)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_any_content_is_accepted_or_described_without_words_of_pydantic(
    kind: type[BaseModel], data: st.DataObject
) -> None:
    optional = dict.fromkeys(kind.model_fields, values)
    content = data.draw(values | st.fixed_dictionaries({}, optional=optional))
    described = ""
    try:
        kind.model_validate(content)
    except ValidationError as error:
        described = faults(error, kind)
    assert not PYDANTIC.search(described)


@pytest.mark.parametrize(
    ("kind", "content", "expected"),
    [
        (
            Recipe,
            {"adapter": {"rnak": 3}},
            "unknown field `rnak` in `adapter`; did you mean `rank`? ",
        ),
        (
            Recipe,
            {"rank": 3},
            "unknown field `rank`; it belongs in `adapter`. Fields: prompt, epochs",
        ),
        (
            _Plan,
            {"pages": [{"page": "a/b", "notebook": "n.ipynb"}]},
            "field `pages.0.page` must be",
        ),
        (Study, {"teams": {"A": ["x"]}}, "field `teams.A.1` is missing"),
        (Recipe, {"epoch": 1, "x": 2}, "dev_dialogues; unknown field `x`"),
        (Recipe, {"x": 2, "epoch": 1, "y": 3}, "did you mean `epochs`? unknown field `y`"),
        (TrainingRecord, {}, "field `held_out` is missing; and 13 more"),
        (
            Recipe,
            {"epochs": "many", "dtype": "int8"},
            "number, found 'many'; field `dtype` must be 'fl",
        ),
    ],
)
def test_the_place_the_problem_and_the_field_that_was_meant_are_named(
    kind: type[BaseModel], content: Any, expected: str
) -> None:
    with pytest.raises(ValidationError) as error:
        kind.model_validate(content)
    assert expected in faults(error.value, kind, quoted=True)
