"""The paper's values as data frames.

Values that the paper's text does not state are missing: no number was read off a figure or
guessed. Percentages become shares, the unit of the measured values.

References:
    CRADLE-Dialogue (arXiv 2606.10380); ``data/published/README.md``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from cradle_lib import paths, strict_yaml
from cradle_lib.arguments import checked
from cradle_lib.errors import BookError
from cradle_lib.published import Published, published_table

#: Names of the paper's systems, by the last part of their keys.
PAPER_SYSTEMS: Final[Mapping[str, str]] = {
    "claude": "Claude",
    "gpt": "GPT",
    "gemini": "Gemini",
    "gpt-oss-120b": "gpt-oss-120b",
    "gpt-oss-20b": "gpt-oss-20b",
    "qwen3-32b": "Qwen3-32B",
    "qwen3-14b": "Qwen3-14B",
    "qwen2.5-72b": "Qwen2.5-72B",
    "llama-4-scout-17b": "Llama-4-Scout-17B",
    "cradle-qwen3-32b": "Qwen3-32B, fine-tuned",
}


@checked
def published_frame(pattern: str) -> pd.DataFrame:
    """Lists the published values whose keys match a pattern.

    Args:
        pattern: Pattern of the keys in ``published.csv``, with names of columns in braces, such as
            ``result.{level}.{score}.{system}``. Values of the last column may contain dots.

    Returns:
        One row for each number or range, in the file's order: a text column for each name in
        braces; ``number`` (float; a share is 0 to 1; NaN for a range); ``published`` (str: the
        number or range as the paper prints it, shares per 100); ``where`` (section of the
        paper) and ``note``.

    Raises:
        BookError: If no key matches.
    """
    fields = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^.]+)", re.escape(pattern))
    try:
        form = re.compile(".+".join(fields.rsplit("[^.]+", 1)))
    except re.error:
        raise BookError(f"{pattern!r} has a name in braces twice, or a number as a name") from None
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for key, entry in published_table().items():
        is_end = key.endswith(("_low", "_high"))
        if (found := form.fullmatch(re.sub("_(low|high)$", "", key))) is None:
            continue
        if found.groups() in rows:
            rows[found.groups()]["published"] += f" to {_printed(entry)}"
            continue
        value = entry.value / 100 if entry.unit in ("percent", "points") else entry.value
        rows[found.groups()] = {
            **found.groupdict(),
            "number": math.nan if is_end else value,
            "published": _printed(entry),
            "where": entry.where,
            "note": entry.note,
        }
    if not rows:
        raise BookError(
            f"no published value has a key like {pattern!r}: the keys are in "
            f"{paths.shown(paths.PUBLISHED / 'published.csv')}"
        )
    return pd.DataFrame(list(rows.values()))


def reference_points() -> pd.DataFrame:
    """Lists the scores that others measured for the baselines on the real test split.

    Returns:
        Columns ``system`` (its name in the registry), ``level``, ``score``, ``published`` (a score
        in percent as printed in the source) and ``note``.
    """
    path = paths.PUBLISHED / "reference_points.csv"
    found = pd.read_csv(path, dtype=str, keep_default_na=False)
    names = {model: entry["name"] for model, entry in strict_yaml.read(paths.REGISTRY).items()}
    return found.replace({"system": names}).rename(columns={"value": "published"})


def paper_models() -> dict[str, str]:
    """Finds the paper's models in the registry.

    Returns:
        Ids in ``models.yml`` to the names of :data:`PAPER_SYSTEMS`.
    """
    models = {
        key: entry.get("published") for key, entry in strict_yaml.read(paths.REGISTRY).items()
    }
    return {key: PAPER_SYSTEMS[system] for key, system in models.items() if system}


def _printed(entry: Published) -> str:
    """Writes a number as the paper prints it, with thousands separators and shares per 100."""
    if entry.unit == "share":
        decimals = max(0, len(entry.text.partition(".")[2]) - 2)
        return f"{100 * entry.value:.{decimals}f}"
    if entry.text.isdigit():
        return f"{int(entry.text):,}"
    return f"+{entry.text}" if entry.unit == "points" and entry.value > 0 else entry.text
