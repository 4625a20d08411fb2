"""Published values as columns of frames, to be shown beside measured ones.

A value that the paper's text does not state is missing: no number was read off a picture or
guessed. Percentages become shares, the unit of the measured values.

References:
    CRADLE-Dialogue (arXiv 2606.10380); ``data/published/README.md``.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

import pandas as pd

from cradle_lib import paths
from cradle_lib.display.cells import DERIVED, STATED, STATED_DIGITS
from cradle_lib.errors import BookError
from cradle_lib.formatting import first_name
from cradle_lib.published import published_table

# How a published number is written, by its unit in the file; all others are counts.
_UNITS: Final = {
    "percent": "share",
    "share": "share",
    "points": "points",
    "jaccard": "number",
    "kappa": "number",
    "labels": "number",
    "turns": "number",
}


def published_frame(pattern: str) -> pd.DataFrame:
    """Lists what the paper states under keys of one form.

    Args:
        pattern: Form of the keys in ``published.csv``, with names of columns in braces, such as
            ``result.{level}.{score}.{system}``. The last one may hold dots.

    Returns:
        One row for each number or range, in the file's order: a text column for each name in
        braces; ``published`` (float; NaN for a range), ``published_low`` and ``published_high``
        (float; NaN for a number), ``published_digits`` (decimals as stated, of the number as it is
        shown), ``unit`` (of :func:`.write`; a share is 0 to 1), ``where``
        (section of the paper) and ``note``.

    Raises:
        BookError: If the form has no name in braces, or no key has this form.
    """
    fields = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^.]+)", re.escape(pattern))
    form = re.compile(".+".join(fields.rsplit("[^.]+", 1)))
    if not form.groups:
        raise BookError(f"{pattern!r} names no column in braces, as in 'corpus.{{quantity}}'")
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for key, entry in published_table().items():
        end = next((end for end in ("_low", "_high") if key.endswith(end)), "")
        if (found := form.fullmatch(key.removesuffix(end))) is None:
            continue
        unit = _UNITS.get(entry.unit, "count")
        value = entry.value / 100 if entry.unit in ("percent", "points") else entry.value
        row = rows.setdefault(
            found.groups(),
            found.groupdict()
            | dict.fromkeys(STATED, math.nan)
            | {STATED_DIGITS: 0, "unit": unit, "where": entry.where, "note": entry.note},
        )
        row[STATED_DIGITS] = max(row[STATED_DIGITS], decimals(entry.text, entry.unit))
        row[f"published{end}"] = value
    if not rows:
        raise BookError(
            f"the paper states nothing under {pattern!r}: the keys are in "
            f"{paths.shown(paths.PUBLISHED / 'published.csv')}"
        )
    return pd.DataFrame(list(rows.values()))


def with_published(
    frame: pd.DataFrame, stated: str | pd.DataFrame, *, others: bool = False
) -> pd.DataFrame:
    """Adds published values to a frame as columns.

    Args:
        frame: Tidy; shares from 0 to 1.
        stated: What :func:`published_frame`, :func:`reference_points` or :func:`.implied_scores`
            gave, or the pattern for the first. It is matched by all of its columns but the
            numbers, ``unit``, ``where`` and ``note``; a ``system`` also by what the registry says
            of the model of that name: whose published numbers are its own, or its id.
        others: Whether rows are added at the end for what is stated of what the frame lacks: of
            the last column to match by, for instance a system, with nothing else that is new.
            A system of the paper has its name there.

    Returns:
        A copy with the column ``published``, NaN where nothing is stated, and
        ``published_low`` and ``published_high`` where ranges are. What these columns held
        before stays where nothing is stated. Attributes are those of the frame.

    Raises:
        BookError: If the frame lacks a column to match by, or no key has the form.
    """
    source = published_frame(stated) if isinstance(stated, str) else stated
    values = (*STATED, STATED_DIGITS, *DERIVED)
    about = (*values, "unit", "where", "note", "solutions")
    keys = [name for name in source.columns if name not in about]
    if absent := [name for name in keys if name not in frame.columns]:
        raise BookError(f"the frame has no column {', '.join(map(repr, absent))} to match by")
    named = frame[keys].astype(object)
    if "system" in keys:
        # Here, because few pages have systems.
        from cradle_lib.display.systems import PAPER_SYSTEMS, published_systems

        known, published = {*source["system"]}, published_systems()
        named["system"] = [
            name if name in known else published.get(first_name(name), name)
            for name in named["system"]
        ]
    ours, theirs = (
        list(zip(*(data[name].astype(object) for name in keys), strict=True))
        for data in (named, source)
    )
    made = frame.copy()
    for column in values:
        if column in source and (column == "published" or source[column].notna().any()):
            stated_values = dict(zip(theirs, source[column], strict=True))
            found = pd.Series([stated_values.get(key) for key in ours], frame.index, dtype=float)
            made[column] = found.fillna(frame[column]) if column in frame else found
    if others:
        *context, last = keys
        new = ~source[last].isin(list(named[last]))
        for name in context:
            new &= source[name].isin(list(frame[name]))
        kept = [name for name in source.columns if name in made.columns]
        added = source.loc[new, kept]
        if "system" in keys:
            added = added.replace({"system": dict(PAPER_SYSTEMS)})
        made = pd.concat([made, added], ignore_index=True)
        made.attrs = dict(frame.attrs)
    return made


def decimals(text: str, unit: str) -> int:
    """Counts the decimals of a number as it is shown; a stated share is shown per 100."""
    written = len(text.partition(".")[2])
    return max(0, written - 2) if unit == "share" else written
