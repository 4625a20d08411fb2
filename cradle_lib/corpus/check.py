"""Compares a corpus with the paper's counts of the test split, and lists unusual rows.

The format of the release is implicit, so that a parser can be wrong without failing. If all counts
agree with the paper, the dialogues, speakers and labels were read as intended. Other corpora have
no published counts; for them :func:`find_quirks` lists unusual rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cradle_lib import labels
from cradle_lib.corpus.dialogue import Corpus, Turn
from cradle_lib.corpus.spellings import WRITTEN_OUT
from cradle_lib.corpus.statistics import corpus_statistics
from cradle_lib.corpus.transcripts import NAMED
from cradle_lib.published import published_label_counts, published_table

# UTF-8 read as Windows-1252, and characters that a decoder could not read.
_MOJIBAKE: Final = re.compile("â€|Ã[\x80-\xbf]|\ufffd")


@dataclass(frozen=True, slots=True)
class Check:
    """A count of the corpus and the published one.

    Attributes:
        name: What is counted.
        found: The count in this corpus.
        published: The count that the paper, or ``label_counts.csv``, gives.
    """

    name: str
    found: int
    published: int

    @property
    def equal(self) -> bool:
        """Whether the two agree."""
        return self.found == self.published


def check_counts(corpus: Corpus) -> list[Check]:
    """Compares the counts that identify the test split with the published ones.

    Args:
        corpus: Any corpus with at least one dialogue.

    Returns:
        The eight counts of Sec 3.4 and 4.3, then the number of user turns with each label
        (not from the paper; ``data/published/README.md`` names the source).

    Raises:
        CorpusError: If there is no dialogue.
    """
    found = corpus_statistics(corpus).set_index("quantity")["value"].fillna(0)
    checks = [
        Check(name.replace("_", " "), int(found[name]), int(entry.value))
        for key, entry in published_table().items()
        if entry.unit == "count" and (name := key.removeprefix("corpus.")) != key
    ]
    stated = published_label_counts()
    checks += [
        Check(label, int(((corpus.gold & bit) != 0).sum()), stated[label])
        for label, bit in labels.BITS.items()
    ]
    return checks


def find_quirks(corpus: Corpus) -> list[str]:
    """Finds rows and dialogues that are valid, but often mistakes.

    Args:
        corpus: Any corpus.

    Returns:
        A phrase for each kind that occurs, with the number of cases and the first one, but without
        text of a dialogue.
    """

    def where(unusual: Callable[[Turn], bool]) -> list[str]:
        return [f"{d.id}, turn {turn.turn_id}" for d in corpus for turn in d.turns if unusual(turn)]

    texts: dict[tuple[str, ...], str] = {}
    duplicates = []
    for dialogue in corpus:
        first = texts.setdefault(tuple(turn.text for turn in dialogue.turns), dialogue.id)
        if first != dialogue.id:
            duplicates.append(f"{dialogue.id}, a copy of {first}")
    found = {
        "dialogues without a user turn, where no model is asked": [
            dialogue.id for dialogue in corpus if not dialogue.user_turns
        ],
        "dialogues without gold labels, which are not scored": [
            dialogue.id for dialogue in corpus if not dialogue.labelled
        ],
        "dialogues with the same text as an earlier one": duplicates,
        "rows without a speaker, which continue the row above": where(lambda t: t.continues),
        "rows without a speaker that start with a name": where(
            lambda t: t.continues and NAMED.match(t.text) is not None
        ),
        "rows without any text": where(lambda t: not t.text),
        "texts with the name of a label": where(lambda t: WRITTEN_OUT.search(t.text) is not None),
        "texts that look wrongly decoded": where(lambda t: _MOJIBAKE.search(t.text) is not None),
        "labels on rows where no model is asked": where(lambda t: bool(t.mask) and not t.asked),
    }
    quirks = [
        f"{what} ({len(places):,}, the first: {places[0]})"
        for what, places in found.items()
        if places
    ]
    if not any(turn.mask for turn in corpus.turns):
        quirks.append("no label on any row")
    return quirks
