"""Selection of the dialogues of a run: a sample, the first ones, or a shard."""

from __future__ import annotations

import numpy as np

from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection.runs.journal import parse_shard


def choose_dialogues(
    corpus: Corpus, limit: int | None = None, sample: int | None = None, shard: str | None = None
) -> list[Dialogue]:
    """Selects the dialogues of a run: draws ``sample``, cuts it to ``limit``, takes ``shard``.

    Raises:
        JournalError: If the shard is not ``i/n``.
    """
    drawn = list(range(len(corpus))) if sample is None else sample_dialogues(corpus, sample)
    positions = drawn[:limit]
    if shard is not None:
        index, count = parse_shard(shard)
        positions = positions[index::count]
    return [corpus.dialogues[position] for position in positions]


def sample_dialogues(corpus: Corpus, n: int, seed: int = 0) -> list[int]:
    """Draws dialogues so that scenarios and reveal timings keep their proportions.

    A systematic sample: the dialogues are sorted by scenario and timing, as far as the corpus has
    them, with ties in random order, and every k-th is taken.

    Args:
        corpus: The corpus.
        n: How many dialogues to draw; all of them if there are fewer.
        seed: Seed of the draw.

    Returns:
        Positions in the corpus, ascending.
    """
    generator = np.random.default_rng(seed)
    strata = [corpus.meta[key] for key in ("scenario", "timing") if key in corpus.meta]
    chance = generator.permutation(len(corpus))
    order = sorted(range(len(corpus)), key=lambda i: (*(s[i] for s in strata), chance[i]))
    n = min(n, len(corpus))
    places = (np.arange(n) + generator.random()) * (len(corpus) / max(n, 1))
    return sorted(order[int(place)] for place in places)
