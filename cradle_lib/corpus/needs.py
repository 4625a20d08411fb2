"""Checks whether a corpus has what an analysis needs, and says on pages what is missing.

In a small or unusual corpus a score may be undefined (NaN), or be 0 only because 0/0 counts as 0. A
page then says what is missing instead of showing misleading numbers.

Only user turns count, because models are asked about no other rows.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.labels import ALERT_MASK, ALL_MASK, CONFIRM_MASK

Need = Literal[
    "user turns",
    "labels",
    "alerts",
    "confirms",
    "both stages",
    "unlabelled turns",
    "timing",
    "scenario",
]
_LABELS: Final[dict[Need, tuple[int, str]]] = {
    "labels": (ALL_MASK, "label"),
    "alerts": (ALERT_MASK, "alert"),
    "confirms": (CONFIRM_MASK, "confirm"),
}
_META: Final[dict[Need, str]] = {"timing": "reveal timing", "scenario": "scenario"}


def unmet(corpus: Corpus, need: Need) -> str | None:
    """Says what a corpus lacks for an analysis, for example gold ``alerts``.

    Gives a clause without a full stop; ``None`` if the corpus has what is needed.
    """
    gold = corpus.gold
    alerts, confirms = (corpus.dialogue_of[(gold & m) != 0] for m in (ALERT_MASK, CONFIRM_MASK))
    if not len(gold):
        return f"No dialogue of {corpus.name} has a user turn"
    if need in _LABELS and not (gold & _LABELS[need][0]).any():
        return f"No user turn of {corpus.name} has a gold {_LABELS[need][1]}"
    if need == "both stages" and not len(np.intersect1d(alerts, confirms)):
        return f"No dialogue of {corpus.name} has both a gold alert and a gold confirm"
    if need == "unlabelled turns" and gold.all():
        return f"Every user turn of {corpus.name} has a gold label"
    if need in _META and not any(corpus.meta.get(need, ())):
        return f"{corpus.name} does not state the {_META[need]} of its dialogues"
    return None
