"""Finds near-duplicate texts without comparing all pairs.

Two sets (of word triples, unless the caller has others) whose Jaccard index reaches a threshold
share one of the rarest members of either. Only the rarest are indexed, and pairs that share one are
compared exactly (prefix filtering, Chaudhuri et al. 2006). Duplicates are not indexed, so that n
copies need only n comparisons.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
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


def near_duplicates(
    texts: Iterable[tuple[str, str]],
    *,
    parts: Callable[[str], set[str]] = triples,
    threshold: float = THRESHOLD,
) -> Iterator[tuple[str, str, float]]:
    """Finds near-duplicates among texts, given as names and texts.

    Args:
        texts: Names and texts, the earlier ones first.
        parts: Gives the set of a text that is compared.
        threshold: Least Jaccard index of two sets that counts as a duplicate, above 0.

    Returns:
        The names of each duplicate and of the earlier text, and their Jaccard index.
    """
    sets = [(name, parts(text)) for name, text in texts]
    frequency = Counter(part for _, own in sets for part in own)
    kept: list[tuple[str, set[str]]] = []
    places: defaultdict[str, list[int]] = defaultdict(list)
    for name, own in sets:
        # One part more than may be missing in a duplicate, so that at least one is shared.
        missing = int(len(own) * (1 - threshold) + 1e-9)
        shared = [part for part in own if frequency[part] > 1]
        # Parts that no other text has count as the rarest, but find nothing.
        wanted = max(missing + 1 - (len(own) - len(shared)), 0)
        rarest = sorted(shared, key=lambda part: (frequency[part], part))[:wanted]
        candidates = {place for part in rarest for place in places[part]}
        indices = ((len(own & kept[i][1]) / len(own | kept[i][1]), i) for i in candidates)
        best, place = max(indices, default=(0.0, -1))
        if best >= threshold:
            yield name, kept[place][0], best
            continue
        for part in rarest:
            places[part].append(len(kept))
        kept.append((name, own))
