"""Foreign text as plain text: names of models and corpora, which must never become markup.

Plain HTML has :func:`html.escape`, and figures take no text for mathematics (see
:mod:`cradle_lib.display.figures`). What is left are Markdown and LaTeX.
"""

from __future__ import annotations

import html
import re
from typing import Final

_MARKDOWN: Final = re.compile(r"([\\`*_\[\]{}<>|$~^#&])")


def markdown(content: str, *, code: bool = False) -> str:
    """Writes text for Markdown and MyST: one line, with every mark that means something escaped.

    CommonMark takes a backslash before any ASCII punctuation for that character alone, so that
    no markup, HTML, role, directive or substitution can begin.

    Args:
        content: Plain text.
        code: Whether what stands between backticks stays code.

    Returns:
        The text, escaped.
    """
    flat = " ".join(content.split())
    parts = re.split(r"(`[^`]+`)", flat) if code else [flat]
    return "".join(
        part if place % 2 else _MARKDOWN.sub(r"\\\1", part) for place, part in enumerate(parts)
    )


def with_code(sentence: str) -> str:
    """Writes a sentence for HTML; what stands between backticks is shown as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(sentence))
