"""YAML within bounds: equal to PyYAML's safe reader where it accepts, one line where not."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cradle_lib import bounded_yaml, paths


@pytest.mark.parametrize(
    "path",
    [paths.REGISTRY, paths.BOOK / "_toc.yml", paths.ROOT / "_config.yml"],
    ids=lambda path: path.name,
)
def test_the_projects_own_files_are_read_as_pyyaml_reads_them(path: Path) -> None:
    assert bounded_yaml.read(path) == yaml.safe_load(path.read_text())


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
        ("9" * 5000, "a value can't be read"),
        ("2026-13-45", "a value can't be read"),
        ("!!bool maybe", "maybe"),
        ("!!int ''", "index"),
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
