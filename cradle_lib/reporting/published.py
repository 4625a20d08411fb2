"""Cells for what the paper states, to stand beside what a run found.

A value that the paper's text does not state is a dash on the page: no number was read
off a picture or guessed. Beside the paper's own values there are a few *reference
points*: scores of two baselines that others measured on the real test split.

References:
    CRADLE-Dialogue (arXiv 2606.10380); ``data/published/README.md``.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from cradle_lib import paths
from cradle_lib.errors import BookError
from cradle_lib.published import published, published_table
from cradle_lib.reporting.tables import MISSING, Cell

#: Names of the paper's systems, by the last part of their keys.
SYSTEMS: Final[Mapping[str, str]] = MappingProxyType(
    {
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
)


def published_cell(key: str, digits: int | None = None) -> Cell:
    """Makes the cell of a published number.

    Args:
        key: Its key in ``published.csv``.
        digits: Decimals shown; as many as the number has if ``None``.

    Returns:
        The number in the unit that the paper uses, or a dash.
    """
    value = published(key)
    if value is None:
        return Cell(MISSING)
    return Cell(f"{value:,.{digits}f}" if digits is not None else f"{value:,.10g}", value=value)


def published_systems(prefix: str) -> list[str]:
    """Lists the systems for which the paper states a number.

    Args:
        prefix: How the keys start, such as ``result.turn.``; their end names the system.

    Returns:
        Keys of :data:`SYSTEMS`, in its order.
    """
    stated = [key for key in published_table() if key.startswith(prefix)]
    return [name for name in SYSTEMS if any(key.endswith(f".{name}") for key in stated)]


@cache
def reference_points() -> Mapping[tuple[str, str, str], float]:
    """Reads what others measured for the baselines on the real test split.

    Returns:
        Percentages, by (model, level, score).

    Raises:
        BookError: If the file can't be read, or a line is not as expected.
    """
    path = paths.PUBLISHED / "reference_points.csv"
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return MappingProxyType(
                {
                    (row["system"], row["level"], row["score"]): float(row["value"])
                    for row in csv.DictReader(file)
                }
            )
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise BookError(
            f"{paths.shown(path)}: expected system, level, score, value and note on each line "
            f"({error}). Restore it from the repository"
        ) from None


def reference_cell(model: str, level: str, score: str) -> Cell:
    """Makes the cell of a reference point, or a dash if nobody measured it."""
    value = reference_points().get((model, level, score))
    return Cell(MISSING) if value is None else Cell(f"{value:.2f}", value=value)
