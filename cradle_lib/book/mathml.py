"""Formulas as MathML, which browsers render without scripts or requests.

A Sphinx extension, chosen by ``html_math_renderer: mathml``.

CSS class: ``cradle-math`` (the box of a displayed formula; it scrolls if it is too wide).
"""

from __future__ import annotations

import html
from typing import Any, Final

from docutils import nodes  # type: ignore[import-untyped, unused-ignore]
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.util import logging

_CONVERTER: Final = LatexToMathML(fancy_error=False)
_log = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the renderer with Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(_rendered(node, display=False))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    box = {"CLASS": "cradle-math", "role": "group", "aria-label": "Formula", "tabindex": "0"}
    writer.body.append(writer.starttag(node, "div", **box))
    writer.body.append(_rendered(node, display=True) + "</div>")
    raise nodes.SkipNode


def _rendered(node: nodes.Element, *, display: bool) -> str:
    r"""Writes a formula as a ``math`` element; lines that end with ``\\`` are aligned at ``&``."""
    latex = node.astext()
    has_lines = r"\\" in latex and r"\begin" not in latex
    aligned = rf"\begin{{aligned}}{latex}\end{{aligned}}" if has_lines else latex
    try:
        return _CONVERTER.convert_with_local_state(aligned, displaystyle=display)
    except LatexError as error:
        # The warning names the page and the line; strict builds treat it as an error.
        _log.warning("the formula %r can't be read: %s", latex, error, location=node)
        return f"<code>{html.escape(latex)}</code>"
