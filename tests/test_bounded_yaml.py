"""YAML within bounds: equal to PyYAML's safe reader where it accepts, one line where not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cradle_lib import bounded_yaml, paths


@pytest.mark.parametrize(
    "path",
    [paths.REGISTRY, paths.BOOK / "_toc.yml", paths.ROOT / "_config.yml"],
    ids=lambda path: path.name,
)
def test_the_projects_own_files_are_read_as_pyyaml_reads_them(path: Path) -> None:
    # PyYAML makes objects of dates; here they are text.
    expected = json.loads(json.dumps(yaml.safe_load(path.read_text()), default=str))
    assert bounded_yaml.read(path) == expected


@pytest.mark.parametrize("text", ["", "a", "a: 1", "[1, {b: [c]}]", "a: &x {b: 1}\nc: {<<: *x}"])
def test_a_small_document_is_read(text: str) -> None:
    assert bounded_yaml.load(text) == yaml.safe_load(text)


def bomb(levels: int, times: int = 9) -> str:
    """Each mapping merges the one before it many times: the values multiply."""
    lines = ["a0: &a0 {k: v}"]
    for level in range(1, levels):
        several = ", ".join([f"*a{level - 1}"] * times)
        lines.append(f"a{level}: &a{level} {{<<: [{several}]}}")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (bomb(9), r"more than 100,000 values \(line"),
        ("a: 1\nb: 2\na: 3", r"'a' stands twice \(line 3\)"),
        ("m: {x: 1, x: 2}", r"'x' stands twice \(line 1\)"),
        ("[" * 51 + "]" * 51, "nested more than 50 deep"),
        ("[" * 100_000, "nested more than 50 deep"),
        ("a: &a [*a]", "nested more than 50 deep"),
        ("9" * 5000, r"can't be read as a number \(line 1\)"),
        ("!!bool maybe", "maybe"),
        ("!!int ''", "can't be read as a number"),
        ("!!timestamp x", "NoneType"),
        ("!!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("a: [1", "expected"),
        ("a: 1\n---\nb: 2", "expected a single document"),
        ("\x1b[31m", "special characters are not allowed"),
        ("x" * 1_000_001, "1,000,001 characters"),
    ],
)
def test_what_is_too_much_or_no_yaml_is_one_line(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        bounded_yaml.load(text)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 300


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20))
def test_a_number_as_json_writes_it_is_that_number(number: float) -> None:
    # JSON is a part of YAML 1.2.
    read = bounded_yaml.load(json.dumps({"extra": [number]}))["extra"][0]
    assert (type(read), repr(read)) == (type(number), repr(number))


@given(st.integers(0, 10**12), st.sampled_from(["", "+", "-"]), st.data())
def test_every_spelling_of_a_number_is_a_number(size: int, sign: str, data: st.DataObject) -> None:
    number = -size if sign == "-" else size
    spellings = {
        f"{size:d}": number,
        f"{size:_d}": number,
        f"0x{size:x}": number,
        f"0x{size:X}": number,
        f"0o{size:o}": number,
        f"0b{size:b}": number,
        f"{size}.": float(number),
        f"{size}.0": float(number),
        f"{size}e0": float(number),
        f"{size}E+0": float(number),
        f"{size}e-2": float(f"{sign}{size}e-2"),
        f".{size}": float(f"{sign}.{size}"),
        f".{size}e1": float(f"{sign}.{size}e1"),
    }
    spelling = data.draw(st.sampled_from(sorted(spellings)))
    read = bounded_yaml.load(f"a: {sign}{spelling}")["a"]
    assert type(read) is type(spellings[spelling])
    assert read == spellings[spelling]


@pytest.mark.parametrize(
    ("text", "number"),
    [("9e-1", 0.9), ("1_000", 1000), ("6.02E+23", 6.02e23), ("0", 0), ("-0x1F", -31)],
)
def test_numbers_of_either_version_are_numbers(text: str, number: float) -> None:
    read = bounded_yaml.load(text)
    assert (type(read), read) == (type(number), number)


@pytest.mark.parametrize("text", ["true", "True", "TRUE", "false", "False", "FALSE"])
def test_true_and_false_are_booleans(text: str) -> None:
    assert bounded_yaml.load(f"a: {text}") == {"a": text.lower() == "true"}


@pytest.mark.parametrize(
    ("text", "use"),
    [
        *((word, "true") for word in ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON")),
        *((word, "false") for word in ("n", "N", "no", "No", "NO", "off", "Off", "OFF")),
        *((number, "a finite decimal number") for number in ("017", "-010", "007", "08", "0_1")),
        ("1:30", ""),
        ("190:20:30.15", ""),
        (".inf", ""),
        ("-.INF", ""),
        (".nan", ""),
        ("1e999", ""),
    ],
)
@pytest.mark.parametrize("form", ["a: {}", "- {}", "[[{}]]", "a: {{b: {}}}"])
def test_a_value_that_readers_disagree_about_is_refused(text: str, use: str, form: str) -> None:
    with pytest.raises(bounded_yaml.AmbiguousError) as raised:
        bounded_yaml.load(form.format(text))
    message = str(raised.value)
    assert f'"{text}"' in message
    assert use in message
    assert "line 1" in message
    assert "\n" not in message
    # The form that the message names is the text.
    quoted = bounded_yaml.load(form.format(f'"{text}"'))
    assert text in str(quoted)


@pytest.mark.parametrize(
    "text", ["2024-01-01", "2024-01-01 10:00:00", "1.2.3", "v1", "1e", ".", "tRue", "=", "0x"]
)
def test_other_words_are_text(text: str) -> None:
    assert bounded_yaml.load(f"a: {text}") == {"a": text}


def test_keys() -> None:
    # Names of axes, and of an option of Chat Completions.
    assert bounded_yaml.load("{x: 1, y: 2, n: 3}") == {"x": 1, "y": 2, "n": 3}
    for word in ("on", "No", "017", "1:30"):
        with pytest.raises(bounded_yaml.AmbiguousError):
            bounded_yaml.load(f"{word}: 1")
