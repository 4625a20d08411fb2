"""Names are text in Markdown, as CommonMark reads it."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from cradle_lib.book.notebooks.notebook import as_markdown

NAMES = (
    r"<img src=x onerror=alert(1)> $x_1$ [/x] {{evil}} `*_|\#\`",
    r"costs $5 and $\nothing$",
    "_hidden",
)


@pytest.mark.parametrize("name", NAMES)
def test_commonmark_reads_an_escaped_name_as_that_name(name: str) -> None:
    heading, inline, _ = MarkdownIt().parse(f"# {as_markdown(name)}")
    assert heading.tag == "h1"
    assert [child.type for child in inline.children or ()] == ["text"]
    assert inline.children[0].content.strip() == name  # type: ignore[index]


def test_the_marks_at_the_ends_of_a_heading_stay() -> None:
    _, inline, _ = MarkdownIt().parse(f"# {as_markdown('# C #')}")
    assert inline.children[0].content.strip() == "# C #"  # type: ignore[index]
    assert as_markdown("one\n\ntwo") == "one two"
