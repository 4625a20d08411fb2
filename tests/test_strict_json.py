"""Strict JSON reads valid documents like Python's own reader, and refuses all others."""

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
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "'c' appears twice in an object"),
        ("[" * 200_000, "nested too deeply"),
        ("9" * 5000, "limit"),
        (b"\xff", "decode"),
        ("[1", "Expecting"),
    ],
)
def test_invalid_json_and_duplicate_keys_are_refused(text: str | bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        strict_json.loads(text)
