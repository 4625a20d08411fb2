"""A table as markup and as files: HTML and LaTeX by pandas' Styler, and links that hold the files.

What Styler lacks is ours: headings of groups, scopes for screen readers, a box that scrolls,
notes, and LaTeX that no text can break. The files are part of the page, so that a saved page
keeps them and nothing is fetched.

CSS classes: ``cradle-scroll`` (the box that scrolls sideways), ``cradle-table``, ``cradle-note``,
``cradle-downloads``, ``num``, ``published``, ``best``, ``ci`` (an interval in small type),
``cradle-sortable`` (sorted by book.js, by the ``data-value`` of cells or else their text),
``cradle-bar`` (a share from 0 to 1 with its interval, drawn by book.css).
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from cradle_lib.display.cells import Cell, clean, with_code
from cradle_lib.display.grid import Grid
from cradle_lib.display.origin import PAGE
from cradle_lib.labels import BITS

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

_TEMPLATE: Final = Path(__file__).with_name("table.html")
_SPECIAL: Final = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\N{EN DASH}": "--",
    "\N{INFINITY}": r"$\infty$",
    # At the start of a row they would be taken for an argument of the line break before it.
    "[": "{[}",
    "*": "{*}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}
# How a formula begins; OWASP, CSV Injection.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")


def to_html(
    grid: Grid,
    caption: str,
    notes: Sequence[str],
    links: str,
    *,
    sortable: bool = False,
    bars: bool = False,
) -> str:
    """Writes a table for a page; no text in it can become markup.

    The caption is also the name of the box in which the table scrolls. In notes, text
    between backticks is shown as code. Links to the files are markup already.
    """
    return str(
        _styler(grid, _html_bar_cell if bars else _html_cell, _html_head)
        .set_caption(html.escape(clean(caption)))
        .to_html(
            sparse_columns=True,
            exclude_styles=True,
            grid=grid,
            kinds=_kinds(grid),
            sortable=sortable,
            notes=[with_code(clean(note)) for note in notes if not _folds(note)],
            signatures=[with_code(clean(note)) for note in notes if _folds(note)],
            links=links,
        )
    )


def to_latex(grid: Grid, caption: str, notes: Sequence[str]) -> str:
    r"""Writes a ``table`` environment for a paper; it needs ``\usepackage{booktabs}``.

    Intervals are small, best values bold, published ones italic.
    """
    lines = (
        _styler(grid, _latex_cell, latex_text)
        .set_caption(latex_text(clean(caption)))
        .to_latex(
            column_format="".join("r" if "num" in kind else "l" for kind in _kinds(grid)),
            position_float="centering",
            hrules=True,
            multicol_align="c",
        )
        .splitlines()
    )
    body = lines.index(r"\midrule") + 1
    written: list[str] = []
    before = ""
    for group, line in zip(grid.groups, lines[body:], strict=False):
        if group and group != before:
            written.append(
                rf"\multicolumn{{{len(grid.heads)}}}{{l}}{{\emph{{{latex_text(group)}}}}} \\"
            )
        written.append(line)
        before = group
    end = lines[body + len(grid.rows) :]
    small = [rf"\par\footnotesize {latex_text(clean(note))}" for note in notes]
    return "\n".join([*lines[:body], *written, *end[:-1], *small, end[-1]]) + "\n"


def to_csv(frame: pd.DataFrame) -> str:
    """Writes a frame without its index, unrounded; missing values are empty fields.

    The last columns name the corpus of the page. A text that a spreadsheet would compute has a
    single quote before it.
    """
    frame = PAGE.marked(frame).rename(columns=uncomputed)
    for place, kind in enumerate(frame.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            column = frame.iloc[:, place].astype(object).map(uncomputed)
            frame.isetitem(place, column.to_numpy())
    # With other ends of lines a return in a text would not be quoted (RFC 4180).
    return frame.to_csv(index=False, lineterminator="\r\n")


def latex_text(text: str) -> str:
    """Escapes text for LaTeX."""
    return "".join(_SPECIAL.get(mark, mark) for mark in text)


def uncomputed(content: Any) -> Any:
    """Keeps a spreadsheet from computing a text, such as ``=HYPERLINK(...)``.

    A text that begins like a formula, and is no number, gets a single quote before it, which
    spreadsheets take for the mark of a text.
    """
    if isinstance(content, str) and content.startswith(_FORMULA) and not _NUMBER.fullmatch(content):
        return f"'{content}"
    return content


def links(caption: str, files: Sequence[tuple[str, str, str, str]]) -> str:
    """Makes a paragraph of links that hold the files themselves.

    Args:
        caption: What the files are about.
        files: Title of the link, file name, media type and content of each.
    """
    made = []
    for title, name, media, content in files:
        data = base64.b64encode(content.encode("utf-8", "replace")).decode()
        spoken = f"{title}: {html.escape(clean(caption))}"
        made.append(
            f'<a download="{html.escape(name)}" aria-label="{spoken}" '
            f'href="data:{media};base64,{data}">{title}</a>'
        )
    return f'<p class="cradle-downloads">{" ".join(made)}</p>'


def _folds(note: str) -> bool:
    """Whether a note says how numbers came about: few readers ask, and it is long."""
    return note.startswith(("Signature `", "In words: "))


def _kinds(grid: Grid) -> list[str]:
    """Classes of the heading of each column: ``num``, ``published``, both or none."""
    columns = ([row[place] for row in grid.rows] for place in range(len(grid.heads)))
    return [
        " ".join(
            ["num"] * any(cell.number for cell in cells)
            + ["published"] * (bool(cells) and all(cell.published for cell in cells))
        )
        for cells in columns
    ]


def _styler(grid: Grid, write: Callable[[Cell], str], escape: Callable[[str], str]) -> Styler:
    # Here, because it needs jinja2, and a table printed in a terminal does not.
    from pandas.io.formats.style import Styler

    flat = len(grid.heads[0]) == 1
    columns: Any = grid.titles if flat else pd.MultiIndex.from_tuples(grid.heads)
    cells = pd.DataFrame(grid.rows, columns=columns, dtype=object)
    kind: Any = Styler.from_custom_template(str(_TEMPLATE.parent), _TEMPLATE.name)
    made: Styler = (
        kind(cells, cell_ids=False)
        .format(write)
        .format_index(escape, axis="columns")
        .hide(axis="index")
    )
    return made


def _html_cell(cell: Cell) -> str:
    small = f' <span class="ci">{html.escape(cell.interval)}</span>' if cell.interval else ""
    text = html.escape(cell.text)
    if cell.link:
        text = f'<a href="{html.escape(cell.link)}">{text}</a>'
    return text + small


def _html_bar_cell(cell: Cell) -> str:
    """A cell with a bar below its share; the bar is drawn from percentages of its width."""
    if not cell.estimate or not all(0 <= part <= 1 for part in cell.estimate):
        return _html_cell(cell)
    names = ("--value", "--low", "--high")
    where = ";".join(
        f"{name}:{100 * part:.1f}%" for name, part in zip(names, cell.estimate, strict=False)
    )
    return f'{_html_cell(cell)}<span class="cradle-bar" aria-hidden="true" style="{where}"></span>'


def _html_head(title: str) -> str:
    """A heading; that of a label may break where its name has its parts."""
    return title.replace("_", "_<wbr>") if title in BITS else html.escape(title)


def _latex_cell(cell: Cell) -> str:
    shown = latex_text(cell.text)
    if cell.best:
        shown = rf"\textbf{{{shown}}}"
    if cell.published and cell.text:
        shown = rf"\textit{{{shown}}}"
    if cell.interval:
        shown += rf" {{\footnotesize {latex_text(cell.interval)}}}"
    return shown
