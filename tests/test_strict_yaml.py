"""Strict YAML reads like PyYAML's safe reader, except for dates, exponents and duplicate keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cradle_lib import paths, strict_yaml


@pytest.mark.parametrize(
    "path",
    [paths.REGISTRY, paths.BOOK / "_toc.yml", paths.ROOT / "_config.yml"],
    ids=lambda path: path.name,
)
def test_the_projects_own_files_are_read_as_pyyaml_reads_them(path: Path) -> None:
    expected = json.loads(json.dumps(yaml.safe_load(path.read_text()), default=str))
    assert strict_yaml.read(path) == expected


@pytest.mark.parametrize("text", ["", "a", "[1, {b: [c]}]", "a: &x {b: 1}\nc: {<<: *x, b: 2}"])
def test_a_small_document_is_read(text: str) -> None:
    assert strict_yaml.load(text) == yaml.safe_load(text)


def test_dates_are_text() -> None:
    assert strict_yaml.load("a: 2024-01-01\nb: 1.2.3") == {"a": "2024-01-01", "b": "1.2.3"}


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20))
def test_a_json_number_is_read_exactly(number: float) -> None:
    read = strict_yaml.load(json.dumps({"extra": [number]}))["extra"][0]
    assert (type(read), repr(read)) == (type(number), repr(number))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2\na: 3", r"'a' appears twice \(line 3\)"),
        ("m: {x: 1, x: 2}", r"'x' appears twice \(line 1\)"),
        ("[" * 5_000, "recursion"),
        ("9" * 5000, "limit"),
        ("!!bool maybe", "maybe"),
        ("!!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("a: [1", "expected.*line 1"),
        ("a: 1\n---\nb: 2", "expected a single document"),
        ("\x1b[31m", "special characters are not allowed"),
    ],
)
def test_invalid_yaml_and_duplicate_keys_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        strict_yaml.load(text)
    assert "\n" not in str(caught.value)
