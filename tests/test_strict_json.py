"""JSON is read whole or refused; what it accepts is what Python's own reader gives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cradle_lib import strict_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_a_document_is_read_as_python_reads_it(value: Any) -> None:
    text = json.dumps(value)
    assert strict_json.loads(text) == strict_json.loads(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "'c' stands twice in an object"),
        ("[" * 51 + "]" * 51, "nested more than 50 deep"),
        ('{"a":' * 51 + "1" + "}" * 51, "nested more than 50 deep"),
        ("[" * 200_000, "nested more than 50 deep"),
        ("9" * 5000, "limit"),
        (b"\xff", "decode"),
        ("[1", "Expecting"),
    ],
)
def test_what_would_be_lost_or_break_is_refused(text: str | bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        strict_json.loads(text)


def test_depth_is_counted_and_not_brackets() -> None:
    assert strict_json.loads(json.dumps([[[]]] * 1000)) == [[[]]] * 1000
    assert strict_json.loads("[" * 50 + "]" * 50)
