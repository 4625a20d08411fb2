"""Small and unusual corpora as CSV files, by a title that says what is unusual."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

# Texts and labels of one dialogue. The Listener's texts start with a dash.
Script = Sequence[tuple[str, str]]

_GREETING: Final = ("-Hello, how are you today?", "none")
_REPLY: Final = ("-Thank you for telling me.", "none")
_CALM: Final = ("The bus was late again.", "none")
_ALERT: Final = ("I don't know how to go on.", "alert_ongoing")
_CONFIRM: Final = ("I have been hurting myself again.", "confirm_SH_ongoing")
_PAST: Final = ("I used to hurt myself years ago.", "confirm_SH_past")
# Text without lexicon entries, so that no baseline predicts a label.
_QUIET: Final = ("It is that thing again, you know.", "confirm_DV_ongoing")
_QUIET_ALERT: Final = ("Things are as they are.", "alert_past")
# A label on a Listener row, as in the release.
_ORPHAN: Final = ("-Was that how you felt?", "alert_past")

_ORDINARY: Final = (
    [_GREETING, _CALM, _REPLY, _ALERT, _REPLY, _CONFIRM],
    [_CALM, _REPLY, _CALM, _REPLY, _ALERT, _REPLY, _CALM],
    [_CALM, _REPLY, _PAST, _REPLY, _CALM],
    [_GREETING, _CALM, _REPLY, _CALM],
)

SCRIPTS: Final[Mapping[str, Sequence[Script]]] = {
    "one dialogue": [_ORDINARY[0]],
    "one user turn each": [[_CALM, _REPLY], [_ALERT], [_GREETING, _CONFIRM], [_PAST], [_CALM]],
    "no labels": [[_CALM, _REPLY, _CALM], [_GREETING, _CALM], [_CALM, _CALM, _CALM]],
    "not labelled": [[(text, "") for text, _ in script] for script in _ORDINARY],
    "partly labelled": [*_ORDINARY, *[[(text, "") for text, _ in s] for s in _ORDINARY[1:]]],
    "one label": [[_CALM, _REPLY, _CALM], [_CALM, _REPLY, _CONFIRM, _REPLY, _CALM]],
    "alerts only": [[_CALM, _REPLY, _ALERT], [_CALM, _ALERT, _REPLY, _QUIET_ALERT]],
    "confirms only": [[_CALM, _REPLY, _CONFIRM], [_CALM, _PAST, _REPLY, _CONFIRM]],
    "twelve ordinary dialogues": [*_ORDINARY, *_ORDINARY, *_ORDINARY],
    "all models agree": [[_CALM, _QUIET_ALERT, _REPLY, _QUIET], [_CALM, _REPLY, _CALM, _QUIET]],
    "a dialogue without a user turn": [_ORDINARY[0], [_GREETING, _ORPHAN]],
    "every user turn labelled": [[_ALERT, _REPLY, _CONFIRM], [_PAST]],
    "no user turn at all": [[_GREETING, _REPLY]],
    "two dialogues of one turn": [[_CALM], [_CONFIRM]],
}


def write(name: str, folder: Path) -> Path:
    """Writes a corpus as CSV in the release's format and returns its path."""
    path = folder / f"{name.replace(' ', '-')}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("turn_id", "text", "labels"))
        for script in SCRIPTS[name]:
            for turn, (text, labels) in enumerate(script):
                speaker = "Listener" if text.startswith("-") else "User"
                rows.writerow((turn, f"{speaker}: {text.removeprefix('-')}", labels))
    return path
