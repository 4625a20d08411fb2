"""Corpora that are small or odd, as files that a user may bring: a title says what is odd."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

# Texts of one dialogue with their labels; those that start with a dash are the Listener's.
Script = Sequence[tuple[str, str]]

_GREETING: Final = ("-Hello, how are you today?", "none")
_REPLY: Final = ("-Thank you for telling me.", "none")
_CALM: Final = ("The bus was late again.", "none")
_ALERT: Final = ("I don't know how to go on.", "alert_ongoing")
_CONFIRM: Final = ("I have been hurting myself again.", "confirm_SH_ongoing")
_PAST: Final = ("I used to hurt myself years ago.", "confirm_SH_past")

_ORDINARY: Final = (
    [_GREETING, _CALM, _REPLY, _ALERT, _REPLY, _CONFIRM],
    [_CALM, _REPLY, _CALM, _REPLY, _ALERT, _REPLY, _CALM],
    [_CALM, _REPLY, _PAST, _REPLY, _CALM],
    [_GREETING, _CALM, _REPLY, _CALM],
)

SCRIPTS: Final[Mapping[str, Sequence[Script]]] = {
    "one dialogue": [_ORDINARY[0]],
    "no labels": [[_CALM, _REPLY, _CALM], [_GREETING, _CALM], [_CALM, _CALM, _CALM]],
    "one label": [[_CALM, _REPLY, _CALM], [_CALM, _REPLY, _CONFIRM, _REPLY, _CALM]],
    "confirms only": [[_CALM, _REPLY, _CONFIRM], [_CALM, _PAST, _REPLY, _CONFIRM]],
    "twelve ordinary dialogues": [*_ORDINARY, *_ORDINARY, *_ORDINARY],
    "every user turn labelled": [[_ALERT, _REPLY, _CONFIRM], [_PAST]],
    "no user turn at all": [[_GREETING, _REPLY]],
}


def write(name: str, folder: Path) -> Path:
    """Writes one of the corpora as CSV in the release's format, and gives its path."""
    path = folder / f"{name.replace(' ', '-')}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("turn_id", "text", "labels"))
        for script in SCRIPTS[name]:
            for turn, (text, labels) in enumerate(script):
                speaker = "Listener" if text.startswith("-") else "User"
                rows.writerow((turn, f"{speaker}: {text.removeprefix('-')}", labels))
    return path
