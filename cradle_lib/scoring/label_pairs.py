"""Which prediction answers which gold label, and what exactly went wrong.

A turn can have several labels on both sides, so a confusion matrix needs to know which prediction
answers which gold label. The paper does not say how it pairs them. Here, turn by turn:

1. Labels on both sides are paired with themselves.
2. The remaining gold labels are paired one to one with the remaining predictions, as many as
   possible, so that the summed similarity is the greatest possible. Two labels are the more
   similar the more they share: the same crisis type (two alerts count as such) weighs 4,
   the same stage 2, the same temporal state 1. A swap of ongoing and past is therefore
   preferred to a wrong crisis type, and that to a wrong stage.
3. If several pairings are equally good, the first gold label, in the order of the labels,
   gets the first prediction it can get in any of them, then the second, and so on; having
   none comes last.
4. A gold label that is left over is paired with ``none``, and so is a prediction that is left
   over. A turn with neither gold label nor prediction is one pair of ``none`` and ``none``.

So every gold label and every prediction is in exactly one pair. An error is a pair of two different
labels. Ten categories say what it is; five kinds group them:

    ``false_negative``: a gold label without a prediction: ``missed_alert``, ``missed_confirm``.
    ``stage``: a confirm in place of an alert, ``over_confirmed``; the reverse, ``under_confirmed``.
    ``temporal``: ongoing and past taken for each other, ``temporal_swap``; the crisis type is the
        same, or both are alerts.
    ``type``: one crisis type in place of another, ``wrong_type``, whatever the temporal states.
    ``false_positive``: a prediction without a gold label, by where the dialogue has that label:
        ``too_early``: gold only on a later turn.
        ``too_late``: gold on an earlier turn, where no prediction answered it, and this is the
        dialogue's first prediction of it; the missed gold label is an error of its own.
        ``repeated``: gold on an earlier turn, and this is a further prediction.
        ``unfounded``: nowhere gold in the dialogue.

False positives and false negatives of the tallies (:mod:`cradle_lib.scoring.counts`), and of
the paper's Sec 6.1, are wider: there a wrong label on a turn is one of each. The paper's Table 6
(a) calls a confirm in place of an alert a false positive; here that is ``stage``, because the turn
was rightly noticed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import pandas as pd

from cradle_lib.detection.predictions import Predictions
from cradle_lib.labels import LABELS, NONE, UNUSABLE, crisis_type, labels_of, stage, temporal
from cradle_lib.scoring.evaluate import signature_of
from cradle_lib.scoring.signature import signed
from cradle_lib.statistics.occurrences import Ints, Masks, label_positions, positions

#: Rows and columns of a confusion matrix.
CELLS: Final = (*LABELS, NONE)
#: The kind that each category belongs to.
KINDS: Final = {
    "missed_alert": "false_negative",
    "missed_confirm": "false_negative",
    "over_confirmed": "stage",
    "under_confirmed": "stage",
    "temporal_swap": "temporal",
    "wrong_type": "type",
    "too_early": "false_positive",
    "too_late": "false_positive",
    "repeated": "false_positive",
    "unfounded": "false_positive",
}


def similarity(gold: str, predicted: str) -> int:
    """Says how much two labels share, from 0 (nothing) to 7 (they are the same)."""
    if predicted == NONE:
        return 0
    return (
        4 * (crisis_type(gold) == crisis_type(predicted))
        + 2 * (stage(gold) == stage(predicted))
        + (temporal(gold) == temporal(predicted))
    )


@lru_cache(maxsize=1 << 14)
def pair(gold: int, predicted: int) -> tuple[tuple[str, str], ...]:
    """Pairs the labels of one turn's two masks as the module describes.

    Gives pairs of a gold label and a predicted one: for each gold label in order one, then one for
    each prediction that is left over.
    """
    rest, spare = labels_of(gold & ~predicted), labels_of(predicted & ~gold)
    seats = (*spare, *[NONE] * (len(rest) - len(spare)))
    _, best = _assign(tuple(rest), seats)
    partner = dict(zip(rest, best, strict=True))
    pairs = [(label, partner.get(label, label)) for label in labels_of(gold)]
    pairs += [(NONE, label) for label in spare if label not in best]
    return tuple(pairs) or ((NONE, NONE),)


@lru_cache(maxsize=1 << 14)
def _assign(gold: tuple[str, ...], seats: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """Gives each gold label a seat of its own: the greatest summed similarity, and the seats.

    Remembering the seats that are left keeps it fast if a turn has all sixteen labels, where trying
    every order would never end.
    """
    if not gold:
        return 0, ()
    found = []
    for seat in dict.fromkeys(seats):
        left = list(seats)
        left.remove(seat)
        total, chosen = _assign(gold[1:], tuple(left))
        found.append((similarity(gold[0], seat) + total, (seat, *chosen)))
    # max keeps the first of equals, which is rule 3.
    return max(found, key=lambda each: each[0])


def kind_of(gold: str, predicted: str) -> str | None:
    """Names the kind of error of a pair; ``None`` if the two are the same."""
    return None if gold == predicted else KINDS[_category(gold, predicted)]


def _category(gold: str, predicted: str) -> str:
    """Names the category of a pair of two different labels, as far as these decide it."""
    if gold == NONE:
        return "unfounded"
    if predicted == NONE:
        return f"missed_{stage(gold)}"
    if stage(gold) != stage(predicted):
        return "over_confirmed" if stage(gold) == "alert" else "under_confirmed"
    same_type = crisis_type(gold) == crisis_type(predicted)
    return "temporal_swap" if same_type else "wrong_type"


def classify(gold: Masks, predicted: Masks, dialogue_of: Ints) -> pd.DataFrame:
    """Pairs gold labels with predictions, turn by turn, and classifies every error.

    Two masks for each of T turns, and the position of the turn's dialogue, ascending. Shape (T,).

    Returns:
        One row for each pair, by turn.

        - ``row`` (int): position of the turn, 0 to T - 1.
        - ``gold``, ``predicted`` (categorical): a label, or ``none``.
        - ``category`` (categorical): the category of an error; missing where ``gold`` and
          ``predicted`` are the same.
    """
    of_gold, of_predicted = (label_positions(masks, dialogue_of) for masks in (gold, predicted))
    turns = zip(
        gold.tolist(),
        predicted.tolist(),
        dialogue_of.tolist(),
        positions(dialogue_of).tolist(),
        strict=True,
    )
    found: list[tuple[int, str, str, str | None]] = []
    for row, (one, other, dialogue, place) in enumerate(turns):
        for left, right in pair(one, other):
            category = None if left == right else _category(left, right)
            if left == NONE != right:
                slot = dialogue, LABELS.index(right)
                category = _false_positive(of_gold.get(slot), of_predicted[slot], place)
            found.append((row, left, right, category))
    frame = pd.DataFrame(found, columns=["row", "gold", "predicted", "category"])
    for name, names in (("gold", CELLS), ("predicted", CELLS), ("category", [*KINDS])):
        frame[name] = pd.Categorical(frame[name], names)
    return frame.astype({"row": int})


def _false_positive(gold: list[int] | None, predicted: list[int], place: int) -> str:
    """Names the category of a prediction without a gold label, by the positions of its label."""
    if gold is None:
        return "unfounded"
    if gold[0] > place:
        return "too_early"
    return "too_late" if predicted[0] == place else "repeated"


def label_pairs(run: Predictions) -> pd.DataFrame:
    """Pairs the gold and predicted labels of every user turn, as a tidy data frame.

    Args:
        run: The predictions for every user turn of a corpus.

    Returns:
        One row for each pair, by turn; one row of ``none`` and ``none`` for a turn with neither
        gold labels nor predictions.

        - ``system`` (str): the run.
        - ``dialogue``, ``turn``, ``position``, ``outcome``, and ``scenario`` and ``timing`` where
          the corpus has them: as in :meth:`.Predictions.to_frame`.
        - ``gold``, ``predicted`` (categorical): a label, or ``none``; ``predicted`` is ``unusable
          answer`` where ``outcome`` is not ``ok``.
        - ``category`` (categorical): the category of an error; missing where ``gold`` and
          ``predicted`` are the same.

        ``attrs["signature"]`` states the scoring settings.
    """
    pairs = name_unusable(classify(run.corpus.gold, run.masks, run.corpus.dialogue_of), run)
    turns = run.to_frame().drop(
        columns=["gold", "gold_mask", "predicted", "predicted_mask", "answer"]
    )
    turns = turns.iloc[pairs.pop("row")].reset_index(drop=True)
    turns.insert(0, "system", run.record.name)
    return signed(pd.concat([turns, pairs], axis=1), signature_of(run))


def name_unusable(pairs: pd.DataFrame, run: Predictions) -> pd.DataFrame:
    """Names unusable answers in ``predicted``, so that they are not taken for *none*."""
    predicted = pairs["predicted"].cat.add_categories([UNUSABLE])
    return pairs.assign(predicted=predicted.where(run.ok[pairs["row"].to_numpy()], UNUSABLE))
