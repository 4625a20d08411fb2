"""CSV downloads, embedded in the page as data URLs.

A saved page therefore keeps its files, and a download needs no request. The files of a page are
numbered in its order: ``results-1.csv``, ``results-2.csv``.

CSS class: ``cradle-downloads``.
"""

from __future__ import annotations

import base64
import html
import os
import re
from typing import Any, Final

import pandas as pd

from cradle_lib import paths
from cradle_lib.display.cells import clean
from cradle_lib.display.notice import PAGE, with_origin

# Prefixes that spreadsheets read as a formula (OWASP, CSV Injection).
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")


def to_csv(frame: pd.DataFrame) -> str:
    """Writes a frame without its index, unrounded; missing values are empty fields.

    The last columns name the corpus of the page. Text that a spreadsheet would compute, such as
    ``=HYPERLINK(...)``, is prefixed with a single quote, which spreadsheets use to mark text.
    """
    frame = with_origin(frame).rename(columns=_escape_formula)
    for place, kind in enumerate(frame.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            column = frame.iloc[:, place].astype(object).map(_escape_formula)
            frame.isetitem(place, column.to_numpy())
    # With other line ends, a carriage return in a text would not be quoted (RFC 4180).
    return frame.to_csv(index=False, lineterminator="\r\n")


def next_file() -> str:
    """Gives the name of the next file of the page; outside a build ``table-1.csv`` and so on."""
    PAGE.files += 1
    return f"{os.environ.get(paths.PAGE) or 'table'}-{PAGE.files}.csv"


def link_to_csv(file: str, caption: str, content: str) -> str:
    """Writes a paragraph with a link that contains a CSV file."""
    data = base64.b64encode(content.encode("utf-8", "replace")).decode()
    return (
        f'<p class="cradle-downloads"><a download="{html.escape(file)}" '
        f'aria-label="CSV: {html.escape(clean(caption))}" '
        f'href="data:text/csv;base64,{data}">CSV</a></p>'
    )


def _escape_formula(content: Any) -> Any:
    if isinstance(content, str) and content.startswith(_FORMULA) and not _NUMBER.fullmatch(content):
        return f"'{content}"
    return content
