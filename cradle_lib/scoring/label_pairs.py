"""Pairs gold labels with predictions, and classifies every error.

A turn can have several gold labels and several predictions, so a confusion matrix needs a pairing.
The paper does not describe one. Here, turn by turn:

1. Labels on both sides are paired with themselves.
2. The remaining gold labels are paired one to one with the remaining predictions, as many as
   possible, so that the summed similarity is the greatest possible. The similarity of two labels is
   the sum of 4 for the same crisis type (or two alerts), 2 for the same stage and 1 for the same
   temporal state. A swap of ongoing and past is therefore preferred to a wrong crisis type, and
   that to a wrong stage.
3. If several pairings are equally good, the first gold label, in the order of the labels, gets the
   first prediction that any of them gives it, then the second, and so on; ``none`` comes last.
4. A gold label that is left over is paired with ``none``, and so is a prediction that is left
   over. A turn with neither gold label nor prediction is one pair of ``none`` and ``none``.

So every gold label and every prediction is in exactly one pair. An error is a pair of two different
labels. Errors have ten categories, in five kinds:

    ``false_negative``: a gold label without a prediction: ``missed_alert``, ``missed_confirm``.
    ``stage``: a confirm in place of an alert, ``over_confirmed``; the reverse, ``under_confirmed``.
    ``temporal``: ongoing and past confused, ``temporal_swap``; the crisis type is the same, or both
        are alerts.
    ``type``: one crisis type in place of another, ``wrong_type``, whatever the temporal states.
    ``false_positive``: a prediction without a gold label, by the turns on which it is gold:
        ``too_early``: gold only on a later turn.
        ``too_late``: gold on an earlier turn, and this is the dialogue's first prediction of it;
            the error on that turn is a separate one.
        ``repeated``: gold on an earlier turn, and this is not the first prediction of it.
        ``unfounded``: not gold on any turn of the dialogue.

In :mod:`cradle_lib.scoring.counts` and in the paper's Sec 6.1, false positives and false negatives
are wider terms: a wrong label on a turn is one of each. The paper's Table 6 (a) calls a confirm in
place of an alert a false positive; here its kind is ``stage``, because the turn was correctly
flagged.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import pandas as pd

from cradle_lib.arguments import checked
from cradle_lib.detection.runs.predictions import Predictions
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
    """Computes the similarity of two labels, from 0 (nothing in common) to 7 (equal)."""
    if predicted == NONE:
        return 0
    return (
        4 * (crisis_type(gold) == crisis_type(predicted))
        + 2 * (stage(gold) == stage(predicted))
        + (temporal(gold) == temporal(predicted))
    )


@lru_cache(maxsize=1 << 14)
def pair(gold: int, predicted: int) -> tuple[tuple[str, str], ...]:
    """Pairs the gold and predicted labels of one turn as the module describes.

    Gives one (gold, predicted) pair for each gold label in order, then one for each prediction that
    is left over.
    """
    rest, spare = labels_of(gold & ~predicted), labels_of(predicted & ~gold)
    candidates = (*spare, *[NONE] * (len(rest) - len(spare)))
    _, best = _assign(tuple(rest), candidates)
    partner = dict(zip(rest, best, strict=True))
    pairs = [(label, partner.get(label, label)) for label in labels_of(gold)]
    pairs += [(NONE, label) for label in spare if label not in best]
    return tuple(pairs) or ((NONE, NONE),)


@lru_cache(maxsize=1 << 14)
def _assign(gold: tuple[str, ...], candidates: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """Assigns a different candidate to each gold label; gives the similarity and the candidates.

    The summed similarity is the greatest possible. The cache makes turns with many labels fast:
    sixteen labels have too many orders to try each.
    """
    if not gold:
        return 0, ()
    found = []
    for candidate in dict.fromkeys(candidates):
        left = list(candidates)
        left.remove(candidate)
        total, chosen = _assign(gold[1:], tuple(left))
        found.append((similarity(gold[0], candidate) + total, (candidate, *chosen)))
    # max gives the first of equal results, which is rule 3.
    return max(found, key=lambda each: each[0])


def kind_of(gold: str, predicted: str) -> str | None:
    """Names the kind of error of a pair; ``None`` if the two are the same."""
    return None if gold == predicted else KINDS[_category(gold, predicted)]


def _category(gold: str, predicted: str) -> str:
    """Names the category of a pair of different labels; ``unfounded`` for any false positive."""
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

    Takes the gold and predicted masks of T turns, and the position of each turn's dialogue,
    ascending. Shape (T,) each.

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
    for row, (gold_mask, predicted_mask, dialogue, place) in enumerate(turns):
        for wanted, given in pair(gold_mask, predicted_mask):
            category = None if wanted == given else _category(wanted, given)
            if category == "unfounded":
                slot = dialogue, LABELS.index(given)
                category = _false_positive(of_gold.get(slot), of_predicted[slot], place)
            found.append((row, wanted, given, category))
    frame = pd.DataFrame(found, columns=["row", "gold", "predicted", "category"])
    for name, names in (("gold", CELLS), ("predicted", CELLS), ("category", [*KINDS])):
        frame[name] = pd.Categorical(frame[name], names)
    return frame.astype({"row": int})


def _false_positive(gold: list[int] | None, predicted: list[int], place: int) -> str:
    """Names the category of a false positive, from the positions of its label in the dialogue."""
    if gold is None:
        return "unfounded"
    if gold[0] > place:
        return "too_early"
    return "too_late" if predicted[0] == place else "repeated"


@checked
def label_pairs(run: Predictions) -> pd.DataFrame:
    """Pairs the gold and predicted labels of every user turn, as a tidy data frame.

    Args:
        run: The predictions for every user turn of a corpus.

    Returns:
        One row for each pair, by turn; one row of ``none`` and ``none`` for a turn with neither
        gold labels nor predictions.

        - ``system`` (str): the model's name.
        - ``dialogue``, ``turn``, ``position``, ``outcome``, and ``scenario`` and ``timing`` where
          the corpus has them: as in :meth:`.Predictions.to_frame`.
        - ``gold``, ``predicted`` (categorical): a label, or ``none``; ``predicted`` is ``unusable
          answer`` where ``outcome`` is not ``ok``.
        - ``category`` (categorical): the category of an error; missing where ``gold`` and
          ``predicted`` are the same.

        ``attrs["signature"]`` states the scoring settings.
    """
    run = run.labelled
    pairs = name_unusable(classify(run.corpus.gold, run.masks, run.corpus.dialogue_of), run)
    turns = run.to_frame().drop(
        columns=["gold", "gold_mask", "predicted", "predicted_mask", "answer"]
    )
    turns = turns.iloc[pairs.pop("row")].reset_index(drop=True)
    turns.insert(0, "system", run.record.name)
    return signed(pd.concat([turns, pairs], axis=1), signature_of(run))


def name_unusable(pairs: pd.DataFrame, run: Predictions) -> pd.DataFrame:
    """Marks unusable answers in ``predicted``, where they would appear as ``none``."""
    predicted = pairs["predicted"].cat.add_categories([UNUSABLE])
    return pairs.assign(predicted=predicted.where(run.ok[pairs["row"].to_numpy()], UNUSABLE))
