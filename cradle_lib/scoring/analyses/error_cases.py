"""Picks example turns for each category of errors by a fixed rule (Table 6 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from cradle_lib.arguments import Positive, Seed, checked
from cradle_lib.detection.protocol.parsing import OUTCOMES
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.labels import NONE
from cradle_lib.scoring.label_pairs import KINDS, classify, kind_of, pair

#: A label, its mark (``correct``, or a kind of error) and the text of the mark.
Mark = tuple[str, str, str]
_NOTES: Final = {
    None: "correct",
    "false_positive": "not gold on this turn",
    "false_negative": "missed",
}
# Rows of context before the turn of an error.
_BEFORE: Final = 4


@checked
def error_cases(
    runs: Sequence[Predictions],
    *,
    per_category: Positive = 1,
    most: Positive | None = None,
    seed: Seed = 0,
) -> pd.DataFrame:
    """Picks error cases by a fixed rule instead of by hand (Table 6).

    For each category of errors, in a fixed order: the turns on which the most models make an error
    of this category, with ties broken at random. No dialogue is shown twice, so a category can have
    fewer cases.

    Args:
        runs: Predictions of one or more models over the same dialogues.
        per_category: Cases of each category.
        most: Maximum number of cases; ``None`` for no limit.
        seed: Seed of the random order of ties.

    Returns:
        One row for each case, for :func:`.show_examples`: ``title`` (the category),
        ``dialogue`` (its id), ``first`` and ``last`` (``turn_id`` of the first and the last row of
        the excerpt, which ends with the rows that continue the turn), ``turn`` (``turn_id`` of the
        error) and ``systems`` (names of the systems with this error).

    Raises:
        ScoringError: If there is no run, or they are not over the same dialogues.
    """
    if not runs or len({run.corpus.fingerprint for run in runs}) > 1:
        raise ScoringError(
            f"{len(runs)} runs to pick error cases from. Give one or more, over the same dialogues."
        )
    runs = [run.labelled for run in runs]
    corpus = runs[0].corpus
    erring: dict[str, dict[int, list[str]]] = {category: {} for category in KINDS}
    for run in runs:
        pairs = classify(corpus.gold, run.masks, corpus.dialogue_of).dropna(subset="category")
        for category, row in dict.fromkeys(zip(pairs["category"], pairs["row"], strict=True)):
            erring[category].setdefault(row, []).append(run.record.name)
    generator = np.random.default_rng(seed)
    asked = [(dialogue, turn) for dialogue in corpus for turn in dialogue.user_turns]
    shown: set[str] = set()
    rows: list[tuple[object, ...]] = []
    for category, found in erring.items():
        title = category.replace("_", " ").capitalize()
        random_order, before = generator.permutation(len(asked)), len(rows)
        for place in sorted(found, key=lambda row: (-len(found[row]), random_order[row])):
            dialogue, turn = asked[place]
            if dialogue.id in shown or len(rows) == before + per_category:
                continue
            shown.add(dialogue.id)
            last = turn.turn_id
            while last + 1 < len(dialogue.turns) and dialogue.turns[last + 1].continues:
                last += 1
            first = max(0, turn.turn_id - _BEFORE)
            rows.append((title, dialogue.id, first, last, turn.turn_id, tuple(found[place])))
    names = ["title", "dialogue", "first", "last", "turn", "systems"]
    return pd.DataFrame(rows[:most], columns=names)


def marks(gold: int, predicted: int) -> list[Mark]:
    """Marks the predicted labels of a turn, and its missed gold labels.

    Takes the turn's gold and predicted masks. Labels are paired as in the confusion matrix.
    """
    found = []
    for one, other in pair(gold, predicted):
        kind = kind_of(one, other)
        label = one if other == NONE else other
        found.append((label, kind or "correct", _NOTES.get(kind, f"in place of {one}")))
    return [mark for mark in found if mark[0] != NONE]


@checked
def turn_marks(runs: Sequence[Predictions]) -> dict[str, dict[tuple[str, int], str | list[Mark]]]:
    """Marks the predictions of runs on every user turn, for :func:`.show_examples`.

    Args:
        runs: Runs over all or some of the dialogues that are shown.

    Returns:
        For each run by name: the marks by dialogue id and ``turn_id``, or the outcome of an
        unusable answer. Turns on which a run was not asked are left out, as are dialogues without
        gold labels.

    Raises:
        ScoringError: If two runs share a name.
    """
    names = [run.record.name for run in runs]
    if len(set(names)) < len(names):
        raise ScoringError(f"runs to mark: {', '.join(names)}. Give each run its own name.")
    found: dict[str, dict[tuple[str, int], str | list[Mark]]] = {}
    for run in (run.labelled for run in runs):
        turns = [(dialogue.id, turn) for dialogue in run.corpus for turn in dialogue.user_turns]
        answers = zip(turns, run.masks.tolist(), run.ok, run.outcomes, strict=True)
        found[run.record.name] = {
            (dialogue, turn.turn_id): marks(turn.mask, mask) if ok else str(OUTCOMES[code])
            for (dialogue, turn), mask, ok, code in answers
        }
    return found
