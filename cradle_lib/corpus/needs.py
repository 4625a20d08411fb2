"""Checks whether a corpus has what an analysis needs, and says on pages what is missing.

In a small or unusual corpus a score may be undefined (NaN), or be 0 only because 0/0 counts as 0. A
page then says what is missing instead of showing misleading numbers.

Only user turns count, because models are asked about no other rows. Dialogues without gold labels
do not count.
"""

from __future__ import annotations

from typing import Final, Literal

from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.labels import ALERT_MASK, ALL_MASK, CONFIRM_MASK

Need = Literal[
    "user turns",
    "gold or none",
    "labels",
    "alerts",
    "confirms",
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
    if not len(corpus.gold):
        return f"No dialogue of {corpus.name} has a user turn"
    gold = corpus.labelled.gold
    if need in _LABELS and not (gold & _LABELS[need][0]).any():
        return f"No user turn of {corpus.name} has a gold {_LABELS[need][1]}"
    if need in ("gold or none", "unlabelled turns") and not len(gold):
        return f"No user turn of {corpus.name} has gold labels, not even `none`"
    if need == "unlabelled turns" and gold.all():
        return f"Every user turn of {corpus.name} has a gold label"
    if need in _META and not any(corpus.meta.get(need, ())):
        return f"{corpus.name} does not state the {_META[need]} of its dialogues"
    return None
