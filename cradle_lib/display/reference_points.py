"""What others measured for the baselines, to be shown beside what was found."""

from __future__ import annotations

import pandas as pd

from cradle_lib import paths
from cradle_lib.display.cells import STATED_DIGITS
from cradle_lib.display.published_values import decimals
from cradle_lib.errors import BookError


def reference_points() -> pd.DataFrame:
    """Lists what others measured for the baselines on the real test split.

    Returns:
        Columns ``system`` (id in the registry), ``level``, ``score``, ``published`` (a share, 0 to
        1), ``published_digits`` and ``note``.

    Raises:
        BookError: If the file can't be read, or is not as expected.
    """
    path = paths.PUBLISHED / "reference_points.csv"
    try:
        found = pd.read_csv(path, dtype={"value": str})
        found = found[["system", "level", "score", "value", "note"]]
        found[STATED_DIGITS] = [decimals(text, "percent") for text in found["value"]]
        found["value"] = found["value"].astype(float) / 100
    except (OSError, KeyError, ValueError) as error:
        raise BookError(
            f"{paths.shown(path)}: expected system, level, score, value and note on each line "
            f"({error}). Restore it from the repository"
        ) from None
    return found.rename(columns={"value": "published"})
