"""Usual names of speakers, and their spelling."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_USUAL: Final = {
    "User": "user human patient client seeker help_seeker caller texter customer participant",
    "Listener": "listener assistant gpt bot chatbot model ai agent therapist psychologist coach "
    "counselor counsellor clinician supporter helper volunteer operator responder",
}
#: Usual names, as :func:`key` spells them, with the role that they have.
ROLES: Final = {name: role for role, spaced in _USUAL.items() for name in spaced.split()}


def names(spaced: str) -> frozenset[str]:
    """Makes a set of the names in a text with spaces between them."""
    return frozenset(spaced.split())


def key(name: object) -> str:
    """Folds the spelling of a name: case, width, spaces and hyphens, a colon at its end."""
    folded = unicodedata.normalize("NFKC", str(name)).casefold()
    return re.sub(r"[\s-]+", "_", folded.strip(" \t:"))
