r"""Formulas as MathML, which browsers render without scripts or requests.

A Sphinx extension, chosen by ``html_math_renderer: mathml``. Formulas of one display that
``\qquad`` separates are shown next to each other, or below each other on a narrow page.

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


def to_mathml(latex: str, *, display: bool = False) -> str:
    r"""Writes a formula, without dollars around it, as a ``math`` element.

    Lines that end with ``\\`` are aligned at their ``&``. An unknown command or an incomplete
    formula is a :class:`LatexError`.
    """
    if r"\\" in latex and r"\begin" not in latex:
        latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
    return _CONVERTER.convert_with_local_state(latex, displaystyle=display)


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the renderer with Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(_rendered(node, [node.astext()], display=False))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    latex = node.astext()
    # Within environments and aligned lines, \qquad is a space.
    is_one_formula = r"\\" in latex or r"\begin" in latex or r"\left" in latex
    parts = [latex] if is_one_formula else latex.split(r"\qquad")
    box = {"CLASS": "cradle-math", "role": "group", "aria-label": "Formula", "tabindex": "0"}
    writer.body.append(writer.starttag(node, "div", **box))
    writer.body.append(_rendered(node, parts, display=True) + "</div>")
    raise nodes.SkipNode


def _rendered(node: nodes.Element, parts: list[str], *, display: bool) -> str:
    try:
        return "".join(to_mathml(part, display=display) for part in parts)
    except LatexError as error:
        # The warning names the page and the line; strict builds treat it as an error.
        _log.warning("the formula %r can't be read: %s", node.astext(), error, location=node)
        return f"<code>{html.escape(node.astext())}</code>"
