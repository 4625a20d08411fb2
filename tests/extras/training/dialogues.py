"""Mild dialogues with labels, written for these tests."""

from __future__ import annotations

from cradle_lib.corpus import Corpus

from ...detection.dialogues import make_corpus

TALK = (
    ("I can't see the point of any of it lately.", "alert_ongoing"),
    ("Most nights I wish I would not wake up.", "confirm_SI_passive_ongoing"),
    ("I made soup and fed the cat.", "none"),
    ("Years ago he would not let me see my friends.", "confirm_DV_past"),
)


def talks(number: int) -> Corpus:
    """Makes dialogues of two to four user turns with the same lines in different orders."""
    scripts = []
    for index in range(number):
        script = []
        for turn in range(2 + index % 3):
            text, labels = TALK[(index + turn * (1 + index // 4)) % len(TALK)]
            script.append(("User", f"{text} That was on day {index}.", labels))
            script.append(("Listener", f"Thank you for telling me, part {turn}.", "none"))
        scripts.append(script)
    return make_corpus(scripts)
