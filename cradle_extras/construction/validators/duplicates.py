"""Dialogues that say nearly the same, found in time linear in their number.

MinHash signatures of word triples are looked up in bands (locality-sensitive hashing), and each
pair that this brings up is compared exactly. A dialogue that is a duplicate is not entered, so
that a thousand copies cost a thousand comparisons and no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from rensa import RMinHash, RMinHashLSH

#: Share of two dialogues' word triples, of all that either has, from which on they are duplicates.
THRESHOLD: Final = 0.8
_WORD: Final = re.compile(r"[\w']+")
_SEED: Final = 2606
_PERMUTATIONS: Final = 128
# With 32 bands of 4, a pair at the threshold is missed once in ten million times.
_BANDS: Final = 32
_CHUNK: Final = 1_000

NAME: Final = "near-duplicate"


def words_of(text: str) -> list[str]:
    """Gives the words of a text in lower case, without punctuation."""
    return _WORD.findall(text.lower())


def triples(text: str) -> set[str]:
    """Gives the word triples of a text; all its words as one if it has fewer than three."""
    words = words_of(text)
    return {" ".join(words[at : at + 3]) for at in range(max(len(words) - 2, 1))}


def similarity(first: str, second: str) -> float:
    """Jaccard index of two texts' word triples."""
    one, other = triples(first), triples(second)
    return len(one & other) / len(one | other)


def near_duplicates(
    texts: Iterable[tuple[str, str]], threshold: float = THRESHOLD
) -> Iterator[tuple[str, str, float]]:
    """Finds dialogues, each a name and what is said, that nearly equal an earlier one.

    Gives the name of a duplicate, that of the earlier dialogue, and their Jaccard index.
    """
    index = RMinHashLSH(threshold, _PERMUTATIONS, _BANDS)
    kept: list[tuple[str, str]] = []
    remaining = iter(texts)
    while chunk := list(islice(remaining, _CHUNK)):
        words = [list(triples(text)) for _, text in chunk]
        signatures = RMinHash.from_token_sets(words, _PERMUTATIONS, _SEED)
        for (name, text), signature in zip(chunk, signatures, strict=True):
            found = ((similarity(text, kept[i][1]), i) for i in index.query(signature))
            best, place = max(found, default=(0.0, -1))
            if best >= threshold:
                yield name, kept[place][0], best
            else:
                index.insert(len(kept), signature)
                kept.append((name, text))
