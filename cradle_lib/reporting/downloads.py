"""Tables and reports as files: CSV, LaTeX and Markdown, and JSON with its schema.

The files are part of the page, so that a saved page keeps them and nothing is fetched.

CSS class: ``cradle-downloads``.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from cradle_lib.display.escaping import latex
from cradle_lib.reporting.notice import Notice
from cradle_lib.reporting.tables import Cell, Table
from cradle_lib.scoring.core.report import Report, report_schema


def to_latex(table: Table) -> str:
    r"""Writes a table for a paper, with the rules of the ``booktabs`` package.

    Args:
        table: The table.

    Returns:
        A ``table`` environment; intervals are small, best values bold, notes below. It needs
        ``\usepackage{booktabs}``.
    """
    width = len(table.columns)
    shape = "".join("l" if i == 0 or c.kind == "text" else "r" for i, c in enumerate(table.columns))
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex(table.caption)}}}",
        rf"\begin{{tabular}}{{{shape}}}",
        r"\toprule",
        " & ".join(latex(column.title) for column in table.columns) + r" \\",
    ]
    for title, rows in groupby(table.rows, key=lambda row: row.group):
        lines.append(r"\midrule")
        if title:
            lines.append(rf"\multicolumn{{{width}}}{{l}}{{\emph{{{latex(title)}}}}} \\")
        lines += [" & ".join(map(_cell, row.cells)) + r" \\" for row in rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\footnotesize {latex(note)}" for note in table.notes]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _cell(cell: Cell) -> str:
    shown = latex(cell.text)
    if cell.best:
        shown = rf"\textbf{{{shown}}}"
    if cell.interval_text:
        shown += rf" {{\footnotesize {latex(cell.interval_text)}}}"
    return shown


@dataclass(frozen=True, slots=True)
class File:
    """One file to download.

    Attributes:
        name: File name.
        media: Media type.
        content: What is in it.
    """

    name: str
    media: str
    content: str


@dataclass(frozen=True)
class Downloads:
    """Links to files that are part of the page.

    Attributes:
        groups: What a group of files is, and the files.
    """

    groups: tuple[tuple[str, tuple[File, ...]], ...]

    def _repr_html_(self) -> str:
        items = "".join(
            f"<li>{html.escape(title)} {', '.join(_link(title, file) for file in files)}</li>"
            for title, files in self.groups
        )
        return f'<ul class="cradle-downloads">{items}</ul>'

    def __repr__(self) -> str:
        """Lists the file names."""
        return ", ".join(file.name for _, files in self.groups for file in files)


def downloads(tables: Sequence[Table | Notice] = (), reports: Sequence[Report] = ()) -> Downloads:
    """Offers tables and reports as files.

    Args:
        tables: Each as CSV with unrounded numbers, LaTeX and Markdown; a notice, which stands
            where there is no table, has no file.
        reports: Each as JSON; their schema comes with them.

    Returns:
        The links.
    """
    groups: list[tuple[str, tuple[File, ...]]] = []
    for table in tables:
        if isinstance(table, Notice):
            continue
        name = _slug(table.caption)
        files = (
            File(f"{name}.csv", "text/csv", table.to_csv()),
            File(f"{name}.tex", "application/x-tex", to_latex(table)),
            File(f"{name}.md", "text/markdown", table.to_markdown()),
        )
        groups.append((table.caption, files))
    for report in reports:
        name = _slug(f"{report.record.model} {report.corpus}")
        title = f"Everything about {report.record.name} over {report.corpus}."
        groups.append((title, (File(f"{name}.json", "application/json", report.to_json()),)))
    if reports:
        schema = json.dumps(report_schema(), indent=1)
        file = File("report.schema.json", "application/schema+json", schema)
        groups.append(("The schema of these reports.", (file,)))
    return Downloads(tuple(groups))


def _link(title: str, file: File) -> str:
    data = base64.b64encode(file.content.encode()).decode()
    kind = {"tex": "LaTeX", "md": "Markdown"}.get(
        file.name.rpartition(".")[2], file.name.rpartition(".")[2].upper()
    )
    return (
        f'<a download="{html.escape(file.name)}" href="data:{file.media};base64,{data}" '
        f'aria-label="{kind}: {html.escape(title)}">{kind}</a>'
    )


def _slug(title: str) -> str:
    words = re.findall(r"[a-z0-9]+", title.lower())
    return "-".join(words[:8]) or "table"
