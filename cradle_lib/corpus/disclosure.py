"""In which scenarios, and on which turns, crises are disclosed (Tables 1 and 8 of the paper).

The release has no column for the scenario or the reveal timing of a dialogue. The
surrogate knows both, and a corpus of one's own may; of any other nothing is assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.labels import ALERT_MASK, CONFIRM_MASK, labels_of
from cradle_lib.published import published_table

#: How positions are filed if a corpus does not know the timing of its dialogues.
ANY_TIMING: Final = "any timing"
_TIMINGS: Final = ("early", "mid", "late")


def scenario_names(found: Iterable[str] = ()) -> Mapping[str, str]:
    """Gives the names of scenarios by id.

    Args:
        found: Ids that a corpus has; those that are not the paper's come last.

    Returns:
        The paper's ``S1`` to ``S7`` with their names, then the corpus' own, which are their
        own names.
    """
    names = {
        key.removeprefix("scenario."): value.note
        for key, value in published_table().items()
        if key.startswith("scenario.")
    }
    return MappingProxyType(names | {own: own for own in found if own not in names})


def labels_by_scenario(corpus: Corpus) -> dict[str, dict[str, int]] | None:
    """Counts in how many dialogues of each scenario a label occurs.

    Args:
        corpus: Any corpus.

    Returns:
        By scenario and label the number of dialogues, labels that do not occur left out;
        ``None`` if the corpus does not know its scenarios.
    """
    if "scenario" not in corpus.meta:
        return None
    found: dict[str, dict[str, int]] = {name: {} for name in sorted(set(corpus.meta["scenario"]))}
    for dialogue, scenario in zip(corpus, corpus.meta["scenario"], strict=True):
        for label in labels_of(dialogue.mask):
            found[scenario][label] = found[scenario].get(label, 0) + 1
    return found


def positions_by_timing(
    corpus: Corpus,
) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Counts on which turns alerts and confirms stand, for each reveal timing.

    Args:
        corpus: A corpus with at least one dialogue.

    Returns:
        By timing two arrays: how many alerts, and how many confirms, stand on the first turn
        of a dialogue, on the second, and so on. Shape (longest dialogue,). One entry,
        :data:`ANY_TIMING`, if the corpus does not know the timings.
    """
    timings = corpus.meta.get("timing", [ANY_TIMING] * len(corpus))
    longest = max(len(dialogue.turns) for dialogue in corpus)
    order: list[str] = [name for name in _TIMINGS if name in timings]
    order += sorted(set(timings) - set(order))
    found: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]] = {
        name: (np.zeros(longest, dtype=np.int64), np.zeros(longest, dtype=np.int64))
        for name in order
    }
    for dialogue, timing in zip(corpus, timings, strict=True):
        alerts, confirms = found[timing]
        for turn in dialogue.turns:
            alerts[turn.turn_id] += (turn.mask & ALERT_MASK).bit_count()
            confirms[turn.turn_id] += (turn.mask & CONFIRM_MASK).bit_count()
    return found
