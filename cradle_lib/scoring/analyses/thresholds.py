"""Scores thresholds on stored label probabilities: recall, precision and calibration.

A model under constrained decoding stores the log-probability of each branch at every choice of an
answer, from which :mod:`~cradle_lib.scoring.analyses.label_probabilities` computes how likely a
label of each kind was. A turn is *flagged* if this probability is at least a threshold, and
*positive* if it has a gold label of the kind. Every distinct probability is a threshold.

The model's own predictions do not correspond to a threshold: the model takes one branch at each
choice, after ``none_bias`` was added to ``none`` at the first. They are a separate point next to
each curve.

A curve describes the stored answers and not a new run: with another threshold, the model would have
seen other predictions of its own in the history of later turns.

Measures:
    ``roc_area``: share of the pairs of a positive and a negative turn in which the positive turn
        has the higher probability, a tie counting half; 0.5 at chance level.
    ``pr_area``: average precision; the prevalence at chance level.
    ``brier``: mean squared difference between the probability and 1 for a positive turn, 0 for a
        negative one.
    ``brier_of_prevalence``: the same if every turn had the prevalence p as its probability,
        p (1 - p).

References:
    Davis and Goadrich, "The Relationship Between Precision-Recall and ROC Curves", ICML 2006;
    Brier, "Verification of Forecasts Expressed in Terms of Probability", 1950.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.arguments import Seed, Share, checked
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.labels import BITS, LABELS
from cradle_lib.scoring.analyses.label_probabilities import (
    probability,
    share_on_branches,
    slot_probabilities,
)
from cradle_lib.scoring.conventions import STAGES
from cradle_lib.scoring.evaluate import signature_of
from cradle_lib.scoring.scores import ENOUGH, precision_recall_f1
from cradle_lib.scoring.signature import signed
from cradle_lib.statistics.bootstrap import DRAWS, bootstrap
from cradle_lib.statistics.rates import Floats, f1, ratio

_BINS: Final = 10


@dataclass(frozen=True)
class _ScoredTurns:
    """The T turns of a run whose choices are stored, and which of them are positive.

    ``wanted`` is the label or stage of interest, ``values`` its probability on each turn, and
    ``predicted`` whether the model predicted it there.
    """

    run: Predictions
    wanted: str
    values: Floats
    positive: NDArray[np.bool_]
    predicted: NDArray[np.bool_]
    dialogue_of: NDArray[np.int64]

    def described(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Adds the columns that all frames of this module share."""
        frame.insert(0, "system", self.run.record.name)
        frame.insert(1, "wanted", self.wanted)
        return frame.assign(positives=int(self.positive.sum()), turns=len(self.values))

    def per_dialogue(self, values: NDArray[Any]) -> NDArray[Any]:
        """Adds up the turns of each dialogue. Shape (T, ...) to (dialogues, ...)."""
        totals = np.zeros((len(self.run.corpus), *values.shape[1:]), values.dtype)
        np.add.at(totals, self.dialogue_of, values)
        return totals

    def hits(self, flagged: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Counts true positives, false positives, false negatives and true negatives.

        ``flagged`` has K sets of turns, shape (T, K). Shape (dialogues, K, 4).
        """
        positive = self.positive[:, None]
        hits = (flagged & positive, flagged & ~positive, ~flagged & positive, ~flagged & ~positive)
        return self.per_dialogue(np.stack(hits, axis=-1).astype(np.int64))

    def curve(self) -> tuple[Floats, Floats, Floats]:
        """Gives the thresholds, ascending, with true and false positives at each. Shape (K,)."""
        levels, place = np.unique(self.values, return_inverse=True)
        # A turn is flagged by every threshold up to its own probability.
        tp, fp = (
            np.bincount(place[chosen], minlength=len(levels))[::-1].cumsum()[::-1].astype(float)
            for chosen in (self.positive, ~self.positive)
        )
        return levels, tp, fp


@checked
def thresholds(runs: Sequence[Predictions]) -> pd.DataFrame:
    """Gives recall and false positive rate at each threshold for any label, alerts and confirms.

    Args:
        runs: Runs; those that stored no log-probabilities are left out.

    Returns:
        One row for each threshold, ascending: every distinct probability of the run, so that the
        lowest flags every turn.

        - ``system`` (str): the model's name; ``wanted`` (str): the labels looked for: ``any``,
          ``alert`` or ``confirm``.
        - ``threshold`` (float): a probability.
        - ``recall``, ``flagged`` (float): the flagged share of the positive turns and of the
          negative turns; NaN without such turns.
        - ``positives``, ``turns`` (int): positive user turns, and all user turns, among those with
          stored choices that fit the answer.

        ``attrs["signature"]`` states the scoring settings.
    """
    parts = []
    for found in _scored_turns(runs, STAGES):
        levels, tp, fp = found.curve()
        shares = {"recall": ratio(tp, tp[:1]), "flagged": ratio(fp, fp[:1])}
        parts.append(found.described(pd.DataFrame({"threshold": levels, **shares})))
    return _joined(parts, runs, ["threshold", "recall", "flagged"])


@checked
def chosen_thresholds(
    runs: Sequence[Predictions],
    dev: Sequence[Predictions] = (),
    *,
    recalls: Sequence[Share] = (0.5, 0.8, 0.9),
    draws: int = DRAWS,
    seed: Seed = 0,
) -> pd.DataFrame:
    """Scores a model's own predictions and selected thresholds, with intervals.

    Args:
        runs: The runs to score; those that stored no log-probabilities are left out.
        dev: Runs of the same systems over other dialogues, on which a threshold is chosen. All
            settings must be the same.
        recalls: Target recalls, 0 to 1; for each the highest threshold that reaches it is chosen.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        One row for each run, kind of label, measure and point.

        - ``system``, ``wanted``, ``positives``, ``turns``: as in :func:`thresholds`.
        - ``measure`` (str): ``recall``, ``precision``, ``f1``, or ``flagged`` (the flagged share of
          the negative turns).
        - ``threshold`` (float): a probability; NaN for the model's own predictions.
        - ``point`` (str): ``model's own predictions``, such as ``recall of 80 %``, or ``highest F1
          on dev``; the last one only for models with a run in ``dev``.
        - ``value``, ``low``, ``high`` (float): a share from 0 to 1 and its 95 % interval.

    Raises:
        ScoringError: If a run and its dev run are over the same corpus.
    """
    others = {(each.run.record.system, each.wanted): each for each in _scored_turns(dev, STAGES)}
    parts = []
    for found in _scored_turns(runs, STAGES):
        levels, tp, _ = found.curve()
        points: dict[str, float] = {}
        for share in recalls:
            if (enough := ratio(tp, tp[:1]) >= share).any():
                points[f"recall of {100 * share:.10g} %"] = levels[enough][-1]
        if other := others.get((found.run.record.system, found.wanted)):
            points["highest F1 on dev"] = _best_threshold(found, other)
        flagged = [found.predicted, *(found.values >= level for level in points.values())]
        rows = found.hits(np.stack(flagged, axis=1))
        points = {"model's own predictions": np.nan, **points}
        frame = bootstrap(rows, _shares, draws=draws, seed=seed)["shares"].to_frame(
            measure=["recall", "precision", "f1", "flagged"], point=points
        )
        parts.append(found.described(frame.assign(threshold=frame["point"].map(points))))
    columns = ["measure", "threshold", "point", "value", "low", "high"]
    return _joined(parts, runs, columns, draws=draws, seed=seed)


@checked
def threshold_scores(
    runs: Sequence[Predictions], *, draws: int = DRAWS, seed: Seed = 0
) -> pd.DataFrame:
    """Scores the probabilities themselves, without a threshold: areas and Brier scores.

    Args:
        runs: Runs; those that stored no log-probabilities are left out.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        One row for each measure of the module and each ``wanted``: any label, the stages, and the
        labels with at least 20 positive turns. Columns are those of :func:`chosen_thresholds`
        without ``point`` and ``threshold``. Areas are NaN if no turn or every turn is positive.
        Each run has another row, ``on_branches`` (``wanted`` is ``any``, without interval): the
        median over turns of the total probability of the first choice's branches, out of the whole
        vocabulary.
    """
    parts = []
    for found in _scored_turns(runs, {**STAGES, **BITS}):
        if found.wanted not in STAGES and found.positive.sum() < ENOUGH:
            continue
        areas = bootstrap(_turns_by_value(found), _areas, draws=draws, seed=seed)["areas"]
        squares = bootstrap(_squares(found), _brier, draws=draws, seed=seed)["brier"]
        parts += [
            found.described(areas.to_frame(measure=["roc_area", "pr_area"])),
            found.described(squares.to_frame(measure=["brier", "brier_of_prevalence"])),
        ]
        if found.wanted == "any":
            choices = [choices[0] for choices in found.run.choices if choices]
            share = float(np.median(list(map(share_on_branches, choices))))
            last = pd.DataFrame({"measure": ["on_branches"], "value": [share]})
            parts.append(found.described(last))
    return _joined(parts, runs, ["measure", "value", "low", "high"], draws=draws, seed=seed)


@checked
def reliability(runs: Sequence[Predictions], *, draws: int = DRAWS, seed: Seed = 0) -> pd.DataFrame:
    """Compares probabilities with observed frequencies.

    Args:
        runs: Runs; those that stored no log-probabilities are left out.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        One row for each decile of the turns by probability; fewer rows if probabilities are equal.

        - ``system``, ``wanted``, ``positives``, ``turns``: as in :func:`thresholds`.
        - ``chance`` (float): the mean probability of a decile; ``size`` (int): its number of turns.
        - ``value``, ``low``, ``high`` (float): the share of its turns that are positive, and its
          95 % interval.
    """
    parts = []
    for found in _scored_turns(runs, STAGES):
        edges = np.unique(np.quantile(found.values, np.linspace(0, 1, _BINS + 1)))
        place = np.searchsorted(edges[1:-1], found.values)
        member = place[:, None] == np.unique(place)
        both = np.stack([member & found.positive[:, None], member], axis=1)
        rows = found.per_dialogue(both.astype(np.int64))
        shares = bootstrap(
            rows,
            lambda totals: {"share": ratio(totals[..., 0, :], totals[..., 1, :])},
            draws=draws,
            seed=seed,
        )["share"]
        size = member.sum(axis=0)
        means = (member * found.values[:, None]).sum(axis=0) / size
        frame = shares.to_frame(chance=means.tolist())
        frame.insert(1, "size", size)
        parts.append(found.described(frame))
    columns = ["chance", "size", "value", "low", "high"]
    return _joined(parts, runs, columns, draws=draws, seed=seed)


def turn_probabilities(run: Predictions) -> Floats | None:
    """Gives the probability of any label on each user turn; ``None`` without stored choices.

    Minus infinity on single turns without stored choices.
    """
    kept, by_slot = _slots_of(run)
    if not kept:
        return None
    found = np.full(len(run.masks), -np.inf)
    found[kept] = probability(by_slot, STAGES["any"])
    return found


def _scored_turns(runs: Sequence[Predictions], scopes: Mapping[str, int]) -> Iterator[_ScoredTurns]:
    for run in (run.labelled for run in runs):
        kept, by_slot = _slots_of(run)
        if not kept:
            continue
        for wanted, mask in scopes.items():
            positive, predicted = (
                (masks[kept] & np.uint16(mask)) != 0 for masks in (run.corpus.gold, run.masks)
            )
            values = probability(by_slot, mask)
            yield _ScoredTurns(
                run, wanted, values, positive, predicted, run.corpus.dialogue_of[kept]
            )


# The analyses of one page read the same runs.
@lru_cache(maxsize=16)
def _slots_of(run: Predictions) -> tuple[list[int], Floats]:
    """Gives the turns with stored choices, and their probabilities, shape (turns, slots, 16)."""
    stored = enumerate(zip(run.choices, run.answers, strict=False))
    read = {
        row: slot_probabilities(choices, answer) for row, (choices, answer) in stored if choices
    }
    slots_of = {row: slots for row, slots in read.items() if slots is not None}
    # Answers with fewer slots than the longest one are filled up with zeros.
    longest = max(map(len, slots_of.values()), default=0)
    by_slot = np.zeros((len(slots_of), longest, len(LABELS)))
    for place, slots in enumerate(slots_of.values()):
        by_slot[place, : len(slots)] = slots
    return [*slots_of], by_slot


def _best_threshold(found: _ScoredTurns, dev: _ScoredTurns) -> float:
    """Finds the threshold with the highest F1 on the dev run; the lowest of several."""
    if dev.run.corpus.fingerprint == found.run.corpus.fingerprint:
        raise ScoringError(
            f"{found.run.record.name}: both runs are over {found.run.corpus.name}. Choose a "
            "threshold on other dialogues than those it is scored on."
        )
    levels, tp, fp = dev.curve()
    return float(levels[np.argmax(f1(tp, tp + fp + tp[0], 0.0))])


def _joined(
    parts: Sequence[pd.DataFrame],
    runs: Sequence[Predictions],
    columns: Iterable[str],
    *,
    draws: int = 0,
    seed: int = 0,
) -> pd.DataFrame:
    names = ["system", "wanted", *columns, "positives", "turns"]
    frame = (
        pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names, dtype=float)
    )
    scored = [run.labelled for run in runs if run.record.name in set(frame["system"])]
    signatures = [signature_of(run, draws=draws, seed=seed) for run in scored]
    return signed(frame[names], *signatures)


def _shares(totals: Floats) -> dict[str, Floats]:
    precision, recall, f1 = precision_recall_f1(totals[..., :3], np.nan)
    flagged = ratio(totals[..., 1], totals[..., 1] + totals[..., 3])
    return {"shares": np.stack([recall, precision, f1, flagged], axis=-2)}


def _turns_by_value(found: _ScoredTurns) -> NDArray[np.int64]:
    """Counts positive and negative turns at each probability of a positive turn, and in between.

    Both areas are computed from these counts in every draw. Shape (dialogues, 2, 2 J + 1) for J
    different probabilities of positive turns, ascending.
    """
    levels = np.unique(found.values[found.positive])
    # Odd places are the values, even ones are between them.
    place = np.searchsorted(levels, found.values)
    place += np.searchsorted(levels, found.values, side="right")
    rows = np.zeros((len(found.run.corpus), 2, 2 * len(levels) + 1), dtype=np.int64)
    np.add.at(rows, (found.dialogue_of, np.where(found.positive, 0, 1), place), 1)
    return rows


def _areas(totals: Floats) -> dict[str, Floats]:
    positive, other = totals[..., 0, :], totals[..., 1, :]
    pairs = positive.sum(axis=-1) * other.sum(axis=-1)
    # Pairs in which the positive turn has the higher probability; a tie counts half.
    won = (positive * (other.cumsum(axis=-1) - other / 2)).sum(axis=-1)
    above = positive[..., ::-1].cumsum(axis=-1)[..., ::-1]
    flagged = above + other[..., ::-1].cumsum(axis=-1)[..., ::-1]
    precision_sum = (positive * ratio(above, flagged, 0.0)).sum(axis=-1)
    # A denominator of 0 makes the average NaN if no turn or every turn is positive.
    denominator = np.where(pairs > 0, positive.sum(axis=-1), 0)
    return {"areas": np.stack([ratio(won, pairs), ratio(precision_sum, denominator)], axis=-1)}


def _squares(found: _ScoredTurns) -> Floats:
    positive = found.positive.astype(np.float64)
    squares = (found.values - positive) ** 2
    return found.per_dialogue(np.column_stack([squares, positive, np.ones_like(positive)]))


def _brier(totals: Floats) -> dict[str, Floats]:
    squares, positive, turns = np.moveaxis(totals, -1, 0)
    prevalence = ratio(positive, turns)
    return {"brier": np.stack([ratio(squares, turns), prevalence * (1 - prevalence)], axis=-1)}
