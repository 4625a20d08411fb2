"""A leaderboard of a folder of bundles, each derived anew before it gets a row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pandas as pd

from cradle_lib.errors import ScoringError
from cradle_lib.exchange.verify import Verification
from cradle_lib.scoring.core.signature import Signature, conditions

# Level and score of each column.
_SHOWN: Final = {
    "turn_micro_f1": ("turn", "micro_f1"),
    "turn_macro_f1": ("turn", "macro_f1"),
    "dialogue_micro_f1": ("dialogue", "micro_f1"),
    "confirm_micro_f1": ("confirm", "micro_f1"),
}


def leaderboard(bundles: Iterable[Verification]) -> pd.DataFrame:
    """Puts verified bundles in order.

    Args:
        bundles: What :func:`.verify` said of each.

    Returns:
        One row for each bundle, by ``conditions`` and then the best first.

        - ``conditions`` (str): what the scores of a group have in common: their turn-level
          signature, without how answers were decoded. Only rows of one group may be compared.
        - ``run``, ``corpus`` (str): the model's name, and what it was run over.
        - ``turn_micro_f1``, ``turn_macro_f1``, ``dialogue_micro_f1``, ``confirm_micro_f1``
          (float): shares from 0 to 1, as the bundle states them; NaN for what it does not.
          ``low``, ``high`` (float): the 95 % interval of the first.
        - ``holds`` (bool): whether everything in the bundle could be derived.
        - ``bundle``, ``checksum`` (str): the file's name and its SHA-256.
    """
    rows = []
    for one in bundles:
        scores = {name: _score(one, *place) for name, place in _SHOWN.items()}
        first = scores["turn_micro_f1"]
        rows.append(
            {
                "conditions": _conditions(one),
                "run": one.record.name if one.record else "unreadable",
                "corpus": one.record.corpus if one.record else "",
                **{name: found.get("value") for name, found in scores.items()},
                "low": first.get("low"),
                "high": first.get("high"),
                "holds": one.holds,
                "bundle": one.path.name,
                "checksum": one.checksum,
            }
        )
    columns = ["conditions", "run", "corpus", *_SHOWN, "low", "high", "holds", "bundle", "checksum"]
    frame = pd.DataFrame(rows, columns=columns).astype(
        dict.fromkeys((*_SHOWN, "low", "high"), float)
    )
    order = ["conditions", "turn_micro_f1", "run"]
    return frame.sort_values(order, ascending=[True, False, True], ignore_index=True)


def _score(one: Verification, level: str, score: str) -> dict[str, Any]:
    for row in one.scores.get(level, {}).get("scores", ()):
        if row.get("score") == score and row.get("label") is None:
            values = {name: row.get(name) for name in ("value", "low", "high")}
            return {name: value for name, value in values.items() if isinstance(value, float)}
    return {}


def _conditions(one: Verification) -> str:
    try:
        line = str(one.scores.get("turn", {}).get("signature", ""))
        return conditions(str(Signature.parse(line)))
    except ScoringError:
        return "not comparable"
