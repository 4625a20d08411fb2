"""What a corpus lacks, in words: the reason why an analysis has nothing to say about it.

In a small or odd corpus a score may be undefined (NaN), or be 0 only because 0/0 counts as 0. A
page then says what is missing, and shows no numbers that look as if a model had earned them.

Only user turns count, because a model is asked about no other row.
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
_META_NAMES: Final[dict[Need, str]] = {"timing": "reveal timing", "scenario": "scenario"}


def gap(corpus: Corpus, need: Need) -> str | None:
    """Says what keeps a corpus from showing something that needs, for example, gold ``alerts``.

    Gives the beginning of a sentence, without a full stop; ``None`` if the corpus has what is
    needed.
    """
    gold = corpus.gold
    if not len(gold):
        return f"No dialogue of {corpus.name} has a user turn"
    if need in _LABELS:
        mask, name = _LABELS[need]
        found = bool((gold & np.uint16(mask)).any())
        return None if found else f"No user turn of {corpus.name} has a gold {name}"
    if need == "both stages":
        alert, confirm = (
            corpus.dialogue_of[(gold & np.uint16(mask)) != 0] for mask in (ALERT_MASK, CONFIRM_MASK)
        )
        if not len(np.intersect1d(alert, confirm)):
            return f"No dialogue of {corpus.name} has both a gold alert and a gold confirm"
    if need == "unlabelled turns" and gold.all():
        return f"Every user turn of {corpus.name} has a gold label"
    if need in _META_NAMES and not any(corpus.meta.get(need, ())):
        return f"{corpus.name} does not say the {_META_NAMES[need]} of a dialogue"
    return None
