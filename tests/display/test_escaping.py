"""Names are text in Markdown, as CommonMark reads it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from cradle_lib.display.escaping import markdown, with_code

NAMES = (
    r"<img src=x onerror=alert(1)> $x_1$ [/x] {{evil}} `*_|\#\`",
    r"costs $5 and $\nothing$",
    "_hidden",
)


@pytest.mark.parametrize("name", NAMES)
def test_commonmark_reads_an_escaped_name_as_that_name(name: str) -> None:
    heading, inline, _ = MarkdownIt().parse(f"# {markdown(name)}")
    assert heading.tag == "h1"
    assert [child.type for child in inline.children or ()] == ["text"]
    assert inline.children[0].content.strip() == name  # type: ignore[index]


def test_the_marks_at_the_ends_of_a_heading_stay() -> None:
    _, inline, _ = MarkdownIt().parse(f"# {markdown('# C #')}")
    assert inline.children[0].content.strip() == "# C #"  # type: ignore[index]
    assert markdown("one\n\ntwo") == "one two"


@given(st.text())
def test_a_sentence_keeps_its_code_and_no_other_markup(text: str) -> None:
    shown = with_code(f"`x|y` {text}")
    assert shown.startswith("<code>x|y</code> ")
    assert not set(re.findall(r"<[^>]*>", shown)) - {"<code>", "</code>"}
