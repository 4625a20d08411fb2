"""Checks a corpus: against what the paper states about its test split, and for quirks.

A parser of an implicit format can be wrong without failing. If all of the published counts
come out, the dialogues, the speakers and the labels were read as the authors meant them. Of a
corpus of one's own nothing is published; what is unusual about it is worth a look instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from cradle_lib import labels
from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.published import published, published_label_counts

# The word by itself, so that `latest` and `contest` claim nothing.
_TEST: Final = re.compile(r"(?<![a-z])test(?![a-z])")


@dataclass(frozen=True, slots=True)
class Check:
    """One count, found and published.

    Attributes:
        name: What is counted.
        found: The count in this corpus.
        published: The count that the paper, or an independent count, gives.
    """

    name: str
    found: int
    published: int

    @property
    def equal(self) -> bool:
        """Whether the two agree."""
        return self.found == self.published


def check_counts(corpus: Corpus) -> list[Check]:
    """Counts what identifies the test split.

    Args:
        corpus: Any corpus.

    Returns:
        The eight counts of Sec 3.4 and 4.3, then how often each label stands on a user
        turn (counted independently of the paper on the released split).
    """
    alerts = [bool(d.mask & labels.ALERT_MASK) for d in corpus]
    confirms = [bool(d.mask & labels.CONFIRM_MASK) for d in corpus]
    found = {
        "dialogues": len(corpus),
        "turns": len(corpus.turns),
        "user_turns": len(corpus.gold),
        "labels": sum(turn.mask.bit_count() for turn in corpus.turns),
        "dialogues_with_alert": sum(alerts),
        "dialogues_with_confirm": sum(confirms),
        "dialogues_with_both": sum(a and c for a, c in zip(alerts, confirms, strict=True)),
        "dialogues_with_neither": sum(not (a or c) for a, c in zip(alerts, confirms, strict=True)),
    }
    checks = [
        Check(name.replace("_", " "), count, int(published(f"corpus.{name}") or 0))
        for name, count in found.items()
    ]
    stated = published_label_counts()
    checks += [
        Check(label, int(((corpus.gold & bit) != 0).sum()), stated[label])
        for label, bit in labels.BITS.items()
    ]
    return checks


def find_quirks(corpus: Corpus) -> list[str]:
    """Finds what is allowed and yet often a slip of an export or of a hand.

    Args:
        corpus: Any corpus.

    Returns:
        A phrase for each kind that occurs, with how often and where first; nothing of what is
        said.
    """
    places = [(dialogue, turn) for dialogue in corpus for turn in dialogue.turns]
    texts: dict[tuple[str, ...], str] = {}
    doubles = []
    for dialogue in corpus:
        first = texts.setdefault(tuple(turn.text for turn in dialogue.turns), dialogue.id)
        if first != dialogue.id:
            doubles.append(f"{dialogue.id}, like {first}")
    found = {
        "dialogues without a user turn, where no model is asked": [
            dialogue.id for dialogue in corpus if not dialogue.user_turns
        ],
        "dialogues word for word like an earlier one": doubles,
        "rows without a speaker, which continue the row above": [
            f"{d.id}, turn {t.turn_id}" for d, t in places if t.continues
        ],
        "rows without any text": [f"{d.id}, turn {t.turn_id}" for d, t in places if not t.text],
        "labels on rows where no model is asked": [
            f"{d.id}, turn {t.turn_id}" for d, t in places if t.mask and not t.asked
        ],
    }
    quirks = [
        f"{what} ({len(where):,}, the first: {where[0]})" for what, where in found.items() if where
    ]
    if not any(turn.mask for turn in corpus.turns):
        quirks.append("no label on any row")
    return quirks


def is_test_split(corpus: Corpus) -> bool:
    """Whether a corpus claims to be the test split, by its name or its file's."""
    names = (corpus.name, corpus.path.stem if corpus.path else "")
    return any(_TEST.search(name.lower()) for name in names)
