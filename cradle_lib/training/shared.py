"""Dialogues that two splits share: what was trained on is no test of a model."""

from __future__ import annotations

from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection.harmless import harmless
from cradle_lib.errors import TrainingError


def require_labels(corpus: Corpus) -> None:
    """Checks that there is something to learn.

    Raises:
        TrainingError: If no user turn of the corpus has a label.
    """
    if not any(turn.mask for dialogue in corpus for turn in dialogue.user_turns):
        raise TrainingError(
            f"{corpus.name}: no user turn has a label, so there is nothing to learn. Train on a "
            "split with gold labels."
        )


def shared_dialogues(one: Corpus, other: Corpus) -> list[tuple[str, str]]:
    """Finds dialogues that say the same in two corpora, whatever their case and spacing.

    Args:
        one: A corpus.
        other: Another.

    Returns:
        The ids of each pair.
    """
    known = {_said(dialogue): dialogue.id for dialogue in other}
    pairs = ((dialogue.id, known.get(_said(dialogue))) for dialogue in one)
    return [(here, there) for here, there in pairs if there is not None]


def require_separate(train: Corpus, held_out: Corpus) -> None:
    """Checks that two splits share no dialogue.

    Raises:
        TrainingError: If they do; the message says how many, and which is the first.
    """
    shared = shared_dialogues(train, held_out)
    if shared:
        here, there = shared[0]
        raise TrainingError(
            f"{train.name} shares {len(shared):,} dialogues with {held_out.name} (the first is "
            f"{here} here and {there} there): a score on them would mean nothing. Remove them, "
            "or agree with --shared."
        )


def _said(dialogue: Dialogue) -> str:
    return "\n".join(
        " ".join(harmless(dialogue.utterance(turn)).lower().split()) for turn in dialogue.user_turns
    )
