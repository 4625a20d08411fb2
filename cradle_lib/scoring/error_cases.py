"""Turns to show as examples of errors (Table 6 of the paper), picked by a stated rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from cradle_lib.corpus.dialogue import Corpus, Dialogue, Turn
from cradle_lib.errors import ScoringError
from cradle_lib.scoring.counts import Masks
from cradle_lib.scoring.error_types import KINDS, Category, ErrorKind, classify

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions

_TITLES: Final = {
    ErrorKind.FALSE_POSITIVE: "A prediction without a gold label",
    ErrorKind.FALSE_NEGATIVE: "A missed gold label",
    ErrorKind.TEMPORAL: "Ongoing and past confused",
    ErrorKind.STAGE: "Alert and confirm confused",
    ErrorKind.TYPE: "Wrong crisis type",
}


@dataclass(frozen=True, slots=True)
class Case:
    """One turn that is shown as an example of a kind of error.

    ``position`` is the turn's among the corpus' user turns, ``tagged`` each model's mask on it, in
    the order the models were given, and ``erring`` are the models that make such an error here.
    """

    kind: ErrorKind
    dialogue: Dialogue
    turn: Turn
    position: int
    tagged: dict[str, int]
    erring: tuple[str, ...]


def pick_cases(
    corpus: Corpus,
    predictions: Mapping[str, Masks],
    *,
    per_kind: int = 1,
    seed: int = 0,
) -> list[Case]:
    """Picks error cases by a rule, so that nobody chooses the telling ones.

    For each kind of error, in a fixed order, one after another until there are enough: the turn on
    which most of the models make an error of this kind, ties broken by a draw. No dialogue is shown
    twice, so that there are fewer cases where a kind has fewer dialogues left. The predictions are
    masks of what each model tagged, by its name.

    Raises:
        ScoringError: If there is no model, or masks don't have an entry for each user turn.
    """
    gold = corpus.gold
    if not predictions:
        raise ScoringError("no predictions to pick error cases from. Give at least one model.")
    for name, masks in predictions.items():
        if masks.shape != gold.shape:
            raise ScoringError(
                f"{name} has masks of shape {masks.shape}, {corpus.name} has {len(gold)} user "
                "turns. Every model must have tagged the same corpus."
            )
    erring: dict[ErrorKind, dict[int, dict[str, None]]] = {kind: {} for kind in ErrorKind}
    for name, masks in predictions.items():
        errors = classify(gold, masks, corpus.dialogue_of).dropna(subset="category")
        for turn, category in zip(errors["row"], errors["category"], strict=True):
            erring[KINDS[Category(category)]].setdefault(turn, {})[name] = None
    generator = np.random.default_rng(seed)
    asked = [(dialogue, turn) for dialogue in corpus for turn in dialogue.user_turns]
    shown: set[str] = set()
    cases: list[Case] = []
    for kind in ErrorKind:
        lot = generator.permutation(len(gold))
        found, before = erring[kind], len(cases)
        for position in sorted(found, key=lambda turn: (-len(found[turn]), lot[turn])):
            dialogue, turn = asked[position]
            if dialogue.id in shown or len(cases) == before + per_kind:
                continue
            shown.add(dialogue.id)
            tagged = {name: int(masks[position]) for name, masks in predictions.items()}
            cases.append(Case(kind, dialogue, turn, position, tagged, tuple(found[position])))
    return cases


def error_cases(
    runs: Sequence[Predictions],
    *,
    per_kind: int = 1,
    most: int | None = None,
    seed: int = 0,
    before: int = 4,
) -> pd.DataFrame:
    """Picks error cases by :func:`pick_cases`, each with the turns before it (Table 6).

    Args:
        runs: Predictions of one or more models over the same dialogues.
        per_kind: Cases of each kind of error.
        most: No more cases than this.
        seed: Seed of the draw among cases in which equally many models err.
        before: How many rows of context come first, if there are so many.

    Returns:
        One row for each case, for :func:`.show_examples`: ``title`` (in neutral words),
        ``dialogue`` (its id), ``first`` and ``last`` (``turn_id`` of the first and the last row of
        the excerpt, which ends with the rows that continue the turn), ``turn`` (``turn_id`` of the
        error) and ``systems`` (names of those that err).

    Raises:
        ScoringError: If there is no run, or they are not over the same dialogues.
    """
    corpus = runs[0].corpus if runs else Corpus("none", ())
    masks = {run.record.name: run.masks for run in runs}
    rows = []
    for case in pick_cases(corpus, masks, per_kind=per_kind, seed=seed)[:most]:
        turns, turn = case.dialogue.turns, case.turn.turn_id
        last = turn
        while last + 1 < len(turns) and turns[last + 1].continues:
            last += 1
        first = max(0, turn - before)
        rows.append((_TITLES[case.kind], case.dialogue.id, first, last, turn, case.erring))
    return pd.DataFrame(rows, columns=["title", "dialogue", "first", "last", "turn", "systems"])
