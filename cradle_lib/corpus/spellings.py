"""Other spellings of the labels, as people and the paper's figures write them.

``Alert: ongoing``, ``SH_past``, ``self-harm (past)`` and ``confirm_domesticviolence_ongoing`` are
read as labels. A part of a label, such as ``confirm_SH``, is only recognised, because it does not
say which label is meant.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from cradle_lib import labels

#: The crisis types as CRADLE Bench and the paper's Figure 12 spell them.
LONG_NAMES: Final = {
    "SI_passive": "suicideideation_passive",
    "SI_active": "suicideideation_active",
    "SH": "selfharm",
    "DV": "domesticviolence",
    "CA": "childabuse_endangerment",
    "SHA": "sexualharassment",
    "RA": "rape",
}
#: Further spellings of a crisis type.
SPELLINGS: Final = {
    "SI_passive": ("passive suicidal ideation", "passive ideation"),
    "SI_active": ("active suicidal ideation", "active ideation"),
    "SH": ("self-harm",),
    "DV": ("domestic violence",),
    "CA": ("child abuse", "childabuse", "child abuse endangerment"),
    "SHA": ("sexual harassment",),
}
#: The name of a label within a text.
WRITTEN_OUT: Final = re.compile(
    rf"(alert|{'|'.join([*labels.CRISIS_TYPES, *LONG_NAMES.values()])})_(ongoing|past)",
    re.IGNORECASE,
)
_STATES: Final = {"ongoing": ("ongoing", "o"), "past": ("past", "p")}
# A sign of doubt or denial counts as a word, so that `SH_past?` is no label.
_SIGN: Final = re.compile(r"[?\u00bf!\u00a1~*+\u00ac\u2260\u00b1<>]")
_WORD: Final = re.compile(rf"[^\W_]+|{_SIGN.pattern}")
_CAMEL_CASE: Final = re.compile("(?<=[a-z])(?=[A-Z])")


def _words(name: str) -> frozenset[str]:
    spaced = _CAMEL_CASE.sub(" ", unicodedata.normalize("NFKC", name))
    return frozenset(_WORD.findall(spaced.casefold()))


def _spellings() -> dict[frozenset[str], str]:
    found: dict[frozenset[str], str] = {}
    for label in labels.LABELS:
        crisis = labels.crisis_type(label)
        names = ["alert"]
        if crisis is not None:
            types = (crisis, LONG_NAMES[crisis], *SPELLINGS.get(crisis, ()))
            names = [f"{stage} {name}" for name in types for stage in ("", "confirm")]
        for state in _STATES[labels.temporal(label)]:
            found |= {_words(f"{name} {state}"): label for name in names}
    return found


_SPELLED: Final = _spellings()
# Words that make a short text look like a label.
_CORES: Final = [
    *(_words(name) for name in (*labels.CRISIS_TYPES, *LONG_NAMES.values())),
    *(_words(name) for names in SPELLINGS.values() for name in names),
    *({name} for name in ("alert", "confirm", "suicide", "suicidal")),
]


def spelled(name: str) -> str | None:
    """Finds the label that is meant, ignoring case, punctuation and the order of words.

    ``confirm`` may be missing, and ``o`` and ``p`` may be written for the temporal states.

    Returns:
        The label as written in :data:`~cradle_lib.labels.LABELS`; ``None`` if there is none.
    """
    return _SPELLED.get(_words(name))


def bit(name: str) -> int | None:
    """Gives the bit of the label in a column's name, whatever signs it has; ``None`` if none is."""
    label = spelled(_SIGN.sub(" ", name))
    return None if label is None else labels.BITS[label]


def resembles(name: str) -> bool:
    """Whether a text of up to four words could be a label, or a part of one."""
    words = _words(name)
    return len(words) <= 4 and any(core <= words for core in _CORES)


def split(text: str) -> list[str]:
    """Splits labels at ``;``, ``,``, ``|`` and line breaks, without brackets and quotes.

    In a list that NumPy printed, there is only a space between quotes.
    """
    names = re.split(r"[;,|\n]|(?<=')\s+(?=')", text.strip(" \t[]{}"))
    return [name.strip(" \t'\"") for name in names]


@lru_cache(maxsize=1 << 12)
def parse(text: str) -> int:
    """Reads a cell with labels in any spelling; ``none`` and ``no crisis`` are no label.

    Raises:
        CorpusError: If a part is not a label, or is ``none`` beside a label.
    """
    names = [labels.NONE if _words(name) == {"no", "crisis"} else name for name in split(text)]
    return labels.parse("; ".join(spelled(name) or name for name in names))
