r"""Formulas as MathML, which every browser shows by itself: no script, and nothing is fetched.

A Sphinx extension of its own, chosen by ``html_math_renderer: mathml``.

Formulas of one display that ``\qquad`` parts stand beside each other, or below each other where
there is no room.

CSS class: ``cradle-math`` (the box of a displayed formula; it scrolls if it is too wide).
"""

from __future__ import annotations

import html
from typing import Any, Final

from docutils import nodes  # type: ignore[import-untyped, unused-ignore]
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

from cradle_lib.errors import BookError
from cradle_lib.version import library_version

_CONVERTER: Final = LatexToMathML(fancy_error=False)
_log = logging.getLogger(__name__)


def to_mathml(latex: str, *, display: bool = False) -> str:
    r"""Writes a formula, without dollars around it, as a ``math`` element.

    Lines that end with ``\\`` are aligned at their ``&``; text in it is escaped. An unknown command
    or a formula that is not complete is an error.
    """
    if r"\\" in latex and r"\begin" not in latex:
        latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
    try:
        return _CONVERTER.convert_with_local_state(latex, displaystyle=display)
    except LatexError as error:
        raise BookError(f"the formula {latex!r} can't be read: {error}") from None


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the renderer with Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {
        "version": library_version(),
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(_rendered(node, display=False))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    box = {"CLASS": "cradle-math", "role": "group", "aria-label": "Formula", "tabindex": "0"}
    writer.body.append(writer.starttag(node, "div", **box))
    try:
        writer.body += [to_mathml(part, display=True) for part in _parts(node.astext())]
    except BookError:
        # Within brackets it is a space: what stands on one side of it is no formula.
        writer.body.append(_rendered(node, display=True))
    if node["number"]:
        writer.body.append(f'<span class="eqno">({get_node_equation_number(writer, node)})')
        writer.add_permalink_ref(node, "Link to this equation")
        writer.body.append("</span>")
    writer.body.append("</div>")
    raise nodes.SkipNode


def _parts(latex: str) -> list[str]:
    # Between lines that are aligned, and within other environments, it is a space.
    whole = r"\\" in latex or r"\begin" in latex
    return [latex] if whole else latex.split(r"\qquad")


def _rendered(node: nodes.Element, *, display: bool) -> str:
    try:
        return to_mathml(node.astext(), display=display)
    except BookError as error:
        # A warning names the page and the line, and ends a build that takes warnings for errors.
        _log.warning("%s", error, location=node)
        return f"<code>{html.escape(node.astext())}</code>"
