"""Scoring conventions: options for the choices that the paper leaves open.

The paper names its metrics (Sec 4, Tables 4 and 5) and publishes no scorer, so five questions
remain open. Each is an option here. The default is the answer that agrees best with the paper, and
the signature of every score states the choice.

1. *What is the Jaccard index of two empty sets?* 1 by default. In Table 5 (confirm only) the
   best Jaccard is 79.40, yet only 417 of the 600 dialogues have a confirm (Sec 3.4): if two
   empty sets scored 0, no system could exceed 417/600 = 69.50. Leaving such dialogues out
   does not explain it either, because the best micro F1 of that table is 76.03, and over
   sets of one label a mean Jaccard can't exceed F1.
2. *What is 0/0?* 0 by default, for precision, recall and F1: the default of scikit-learn,
   and the cautious choice. It matters for a label with neither gold nor prediction.
3. *What about labels on rows where no model is asked?* Ignored by default: inference is run
   on user turns only (Sec 4.3). Two of the 713 labels of the released test split are such
   orphans.
4. *What does an unparsed, refused or failed answer score?* It counts as no prediction by default,
   and is never correct, even on turns without gold labels. The paper does not mention such answers;
   counted as ``none``, 84 % of them would be exact matches.
5. *Which macro F1?* The mean of the labels' F1 by default. Some compute the harmonic mean of
   macro precision and macro recall instead, which is never lower and which a system can raise
   by trading precision on some labels for recall on others (Opitz and Burst, "Macro F1 and
   Macro F1", arXiv 1911.03347). The paper does not say which it reports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from cradle_lib.arguments import Share, check_fields
from cradle_lib.corpus.dialogue import Corpus, Turn
from cradle_lib.corpus.needs import Need
from cradle_lib.errors import ScoringError
from cradle_lib.labels import ALERT_MASK, ALL_MASK, CONFIRM_MASK

if TYPE_CHECKING:
    from cradle_lib.detection.runs.predictions import Predictions

Level = Literal["turn", "dialogue", "confirm"]
Orphans = Literal["ignore", "attach", "count"]
Unparsed = Literal["miss", "none", "exclude"]
MacroF1 = Literal["mean", "harmonic"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
#: Masks of the label groups that analyses report: all labels, alerts and confirms.
STAGES: Final = {"any": ALL_MASK, "alert": ALERT_MASK, "confirm": CONFIRM_MASK}
# Gold labels that a corpus must have for precision, recall and F1 at a level to be defined.
NEEDED: Final[dict[Level, Need]] = {"turn": "labels", "dialogue": "labels", "confirm": "confirms"}


@dataclass(frozen=True, slots=True)
class Conventions:
    """The scoring conventions: choices that the paper leaves open.

    Attributes:
        empty_jaccard: Jaccard index of two empty sets, 0 to 1.
        zero_division: Value of a precision, recall or F1 whose denominator is 0; 0 to 1.
        orphans: Labels on rows where no model is asked. ``ignore`` drops them. ``attach`` moves
            them to the previous user turn of the dialogue, or to its first one. There, a label that
            the turn already has counts once; without any user turn the label is dropped. ``count``
            makes each such row a separate unit without predictions: a miss at turn level, a member
            of the gold set at dialogue level.
        unparsed: Answers that were unparsed, refused or failed. They predict nothing. ``miss``: a
            unit with such an answer and with neither predicted nor gold labels is not an exact
            match and has Jaccard 0. ``none``: they count as if the model had answered ``none``.
            ``exclude``: their turns are left out, gold labels included, so runs are compared only
            if they have such answers on the same turns.
        macro_f1: ``mean`` of the labels' F1, or ``harmonic`` mean of macro precision and macro
            recall.

    Raises:
        ScoringError: If a value is outside its range or choices.
    """

    empty_jaccard: Share = 1.0
    zero_division: Share = 0.0
    orphans: Orphans = "ignore"
    unparsed: Unparsed = "miss"
    macro_f1: MacroF1 = "mean"

    def __post_init__(self) -> None:
        """Rejects values outside their range or choices."""
        check_fields(self, ScoringError)


class Rows(NamedTuple):
    """Aligned gold labels and predictions, with orphans treated as the conventions say.

    Attributes:
        gold: Masks of gold labels. Shape (rows,), as the others.
        predicted: Masks of predicted labels.
        dialogue_of: The position of each row's dialogue, ascending.
        answered: Whether the row has a usable answer. True for the row of an orphan, about which no
            model is asked.
    """

    gold: NDArray[np.uint16]
    predicted: NDArray[np.uint16]
    dialogue_of: NDArray[np.int64]
    answered: NDArray[np.bool_]

    def take(self, chosen: NDArray[np.bool_]) -> Rows:
        """Selects rows."""
        return Rows._make(column[chosen] for column in self)


def align_rows(run: Predictions, conventions: Conventions) -> Rows:
    """Aligns a run's predictions with the gold labels, orphans included as the conventions say.

    Gives one row for each user turn, and if orphans are counted also one for each of them.
    """
    corpus = run.corpus
    rows = Rows(corpus.gold, run.masks, corpus.dialogue_of, run.ok)
    if conventions.orphans == "attach":
        return _attach(corpus, rows)
    if conventions.orphans == "count":
        return _count(corpus, rows)
    return rows


def orphans_of(corpus: Corpus) -> list[tuple[int, Turn]]:
    """Finds labelled turns about which no model is asked, each with its dialogue's position."""
    return [
        (position, turn)
        for position, dialogue in enumerate(corpus)
        for turn in dialogue.turns
        if turn.mask and not turn.asked
    ]


def _attach(corpus: Corpus, rows: Rows) -> Rows:
    gold = rows.gold.copy()
    for position, orphan in orphans_of(corpus):
        dialogue = corpus.dialogues[position]
        before = sum(turn.turn_id < orphan.turn_id for turn in dialogue.user_turns)
        first = int(np.searchsorted(rows.dialogue_of, position))
        if dialogue.user_turns:
            gold[first + max(before - 1, 0)] |= orphan.mask
    return rows._replace(gold=gold)


def _count(corpus: Corpus, rows: Rows) -> Rows:
    orphans = orphans_of(corpus)
    positions = np.array([position for position, _ in orphans], dtype=np.int64)
    masks = np.array([turn.mask for _, turn in orphans], dtype=np.uint16)
    where = np.searchsorted(rows.dialogue_of, positions, side="right")
    return Rows(
        np.insert(rows.gold, where, masks),
        np.insert(rows.predicted, where, np.uint16(0)),
        np.insert(rows.dialogue_of, where, positions),
        np.insert(rows.answered, where, True),
    )
