"""Finds near-duplicate dialogues without comparing all pairs.

Two sets of word triples whose Jaccard index reaches a threshold share one of the rarest triples of
either. Only the rarest triples are indexed, and pairs that share one are compared exactly (prefix
filtering, Chaudhuri et al. 2006). Duplicates are not indexed, so that n copies need only n
comparisons.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

#: Dialogues are duplicates if the Jaccard index of their word triples is at least this.
THRESHOLD: Final = 0.8
NAME: Final = "near-duplicate"
_WORD: Final = re.compile(r"[\w']+")


def words_of(text: str) -> list[str]:
    """Gives the words of a text in lower case, without punctuation."""
    return _WORD.findall(text.lower())


def triples(text: str) -> set[str]:
    """Gives the word triples of a text; all words as one entry if it has fewer than three."""
    words = words_of(text)
    return {" ".join(words[at : at + 3]) for at in range(max(len(words) - 2, 1))}


def near_duplicates(texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, float]]:
    """Finds near-duplicates among dialogues, given as names and texts.

    Gives the names of the duplicate and of the earlier dialogue, and their Jaccard index.
    """
    sets = [(name, triples(text)) for name, text in texts]
    frequency = Counter(triple for _, own in sets for triple in own)
    kept: list[tuple[str, set[str]]] = []
    places: defaultdict[str, list[int]] = defaultdict(list)
    for name, own in sets:
        # One triple more than may be missing in a duplicate, so that at least one is shared.
        missing = int(len(own) * (1 - THRESHOLD) + 1e-9)
        shared = [triple for triple in own if frequency[triple] > 1]
        # Triples that no other dialogue has count as the rarest, but find nothing.
        wanted = max(missing + 1 - (len(own) - len(shared)), 0)
        rarest = sorted(shared, key=lambda triple: (frequency[triple], triple))[:wanted]
        candidates = {place for triple in rarest for place in places[triple]}
        indices = ((len(own & kept[i][1]) / len(own | kept[i][1]), i) for i in candidates)
        best, place = max(indices, default=(0.0, -1))
        if best >= THRESHOLD:
            yield name, kept[place][0], best
            continue
        for triple in rarest:
            places[triple].append(len(kept))
        kept.append((name, own))
