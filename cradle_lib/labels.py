"""The sixteen labels of the Alert-Confirm protocol.

A label has a *stage* (alert or confirm), for confirms a *crisis type*, and a
*temporal state* (ongoing or past). An alert never names a crisis type. A set of
labels is a 16-bit mask: bit ``i`` stands for ``LABELS[i]``. The order is that of
the protocol: alerts first, then the seven crisis types, ongoing before past.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Sec 3.3 and Appendix C.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache, lru_cache, reduce
from operator import or_
from typing import Final, Literal

from cradle_lib.errors import CorpusError

Stage = Literal["alert", "confirm"]
Temporal = Literal["ongoing", "past"]

NONE: Final = "none"
#: Shown in place of a prediction if the answer could not be parsed.
UNUSABLE: Final = "unusable answer"
TEMPORAL_STATES: Final[tuple[Temporal, ...]] = ("ongoing", "past")
CRISIS_TYPES: Final = {
    "SI_passive": "passive suicidal ideation",
    "SI_active": "active suicidal ideation",
    "SH": "self-harm",
    "DV": "domestic violence",
    "CA": "child abuse",
    "SHA": "sexual harassment",
    "RA": "rape",
}
LABELS: Final[tuple[str, ...]] = (
    *(f"alert_{state}" for state in TEMPORAL_STATES),
    *(f"confirm_{crisis}_{state}" for crisis in CRISIS_TYPES for state in TEMPORAL_STATES),
)
BITS: Final = {label: 1 << index for index, label in enumerate(LABELS)}


def _matching(prefix: str, suffix: str) -> int:
    return sum(
        b for label, b in BITS.items() if label.startswith(prefix) and label.endswith(suffix)
    )


ALL_MASK: Final = _matching("", "")
ALERT_MASK: Final = _matching("alert_", "")
CONFIRM_MASK: Final = _matching("confirm_", "")
ONGOING_MASK: Final = _matching("", "_ongoing")
PAST_MASK: Final = _matching("", "_past")

_KNOWN: Final = f"Labels are: {', '.join(LABELS)}; or `{NONE}` alone."
_LOWER: Final = {label.lower(): label for label in LABELS}
_SEPARATORS: Final = re.compile(r"[;,|]")


def stage(label: str) -> Stage:
    """Says whether a label is an alert or a confirm."""
    return "alert" if BITS[label] & ALERT_MASK else "confirm"


def temporal(label: str) -> Temporal:
    """Says whether a label is ongoing or past."""
    return "ongoing" if BITS[label] & ONGOING_MASK else "past"


def crisis_type(label: str) -> str | None:
    """Gives the crisis type of a confirm, such as ``SI_active``; ``None`` for an alert."""
    return None if stage(label) == "alert" else label.split("_", 1)[1].rsplit("_", 1)[0]


def short(label: str) -> str:
    """Shortens a label the way the paper's tables do: ``confirm_SH_past`` is ``SH_past``."""
    return label.removeprefix("confirm_")


def find(name: str) -> str:
    """Looks up a label by name, ignoring case, and gives it as written in :data:`LABELS`.

    Raises:
        CorpusError: If no label has this name; the message suggests the closest one.
    """
    name = name.strip()
    found = _LOWER.get(name.lower())
    if found is None:
        near = get_close_matches(name[:60].lower(), list(_LOWER), n=1, cutoff=0.6)
        advice = f"Did you mean {_LOWER[near[0]]!r}?" if near else _KNOWN
        raise CorpusError(f"unknown label {name[:60]!r}. {advice}")
    return found


def mask_of(names: Iterable[str]) -> int:
    """Packs labels, in any order and case, into a mask; duplicates count once.

    Raises:
        CorpusError: If one of them is not a label.
    """
    return union(BITS[find(name)] for name in names)


def union(masks: Iterable[int]) -> int:
    """Combines masks: the result has every label that occurs in any of them."""
    return reduce(or_, masks, 0)


def labels_of(mask: int) -> tuple[str, ...]:
    """Unpacks a mask into labels, in the fixed order."""
    return tuple(label for label, bit in BITS.items() if mask & bit)


@lru_cache(maxsize=1 << 12)
def parse(text: str) -> int:
    """Reads the ``labels`` cell of a corpus into a mask.

    Accepts labels separated by ``;``, ``,`` or ``|``, a JSON or Python list, and ``none`` or an
    empty text for a turn without labels.

    Raises:
        CorpusError: If a part is not a label, or is ``none`` beside a label.
    """
    # Strip the brackets and quotes of a JSON or Python list.
    names = [name.strip(" \t'\"") for name in _SEPARATORS.split(text.strip(" \t[]"))]
    given = [name for name in names if name.lower() not in ("", "null", "nan")]
    return 0 if {*map(str.lower, given)} == {NONE} else mask_of(given)


def format_prediction(mask: int, *, usable: bool) -> str:
    """Writes the prediction of an answer: labels, ``none`` or ``unusable answer``."""
    return format_mask(mask) if usable else UNUSABLE


@cache
def format_mask(mask: int) -> str:
    """Writes a mask the way the release does: ``a; b``, or ``none``."""
    return "; ".join(labels_of(mask)) or NONE
