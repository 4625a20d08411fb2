"""Thresholds on the probabilities that a constrained model stored: recall, precision, calibration.

A model under constrained decoding stores the log-probability of each branch at every choice of an
answer, from which :mod:`~cradle_lib.scoring.label_probabilities` computes how likely a
label of each kind was. A turn is *flagged* if this probability is at least a threshold, and
*positive* if it has a gold label of the kind. Every distinct probability is a threshold.

The model's own predictions do not follow from a threshold: the model takes one branch at each
choice, after ``none_bias`` was added to ``none`` at the first. They are a separate point beside
each curve, and :func:`bias_effects` counts the turns on which the bias changed the branch.

Only the answers that were given are used. With another threshold the model would have seen other
labels of its own on later turns, so a curve describes the stored answers and not a new run.

Measures:
    ``roc_area``: share of the pairs of a positive turn and another in which the positive turn has
        the higher probability, a tie counting half; 0.5 for chance alone.
    ``pr_area``: average precision; the prevalence for chance alone.
    ``brier``: mean squared difference between the probability and 1 for a positive turn, 0 for
        another.
    ``brier_of_prevalence``: the same if every turn had the prevalence p as its probability,
        p (1 - p).

References:
    Davis and Goadrich, "The Relationship Between Precision-Recall and ROC Curves", ICML 2006;
    Brier, "Verification of Forecasts Expressed in Terms of Probability", 1950.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.detection.predictions import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.labels import LABELS, NONE
from cradle_lib.scoring.conventions import Conventions
from cradle_lib.scoring.evaluate import signature_of
from cradle_lib.scoring.label_probabilities import (
    Choice,
    probability,
    share_on_branches,
    slot_probabilities,
)
from cradle_lib.scoring.occurrences import SCOPES, STAGES
from cradle_lib.scoring.scores import ENOUGH
from cradle_lib.scoring.signature import signed
from cradle_lib.statistics.bootstrap import DRAWS, Estimate, bootstrap
from cradle_lib.statistics.rates import Floats, f1, ratio

# Thresholds with an interval, evenly spaced over the turns: enough for a band.
_BAND: Final = 41
_BINS: Final = 10
_SHARES: Final = ("recall", "precision", "f1", "flagged")
_AREAS: Final = ("roc_area", "pr_area")
_BRIER: Final = ("brier", "brier_of_prevalence")
_ABOUT: Final = ("system", "over", "wanted")
_SIZES: Final = ("positives", "turns", "of_turns")
_ESTIMATE: Final = ("value", "low", "high")


@dataclass(frozen=True)
class _ScoredTurns:
    """The T turns of a run whose choices are stored, and what is looked for on them."""

    run: Predictions
    wanted: str
    values: Floats
    positive: NDArray[np.bool_]
    tagged: NDArray[np.bool_]
    dialogue_of: NDArray[np.int64]

    def about(self) -> dict[str, Any]:
        """What every row of a frame says."""
        return {
            "system": self.run.record.name,
            "over": self.run.over,
            "wanted": self.wanted,
            "positives": int(self.positive.sum()),
            "turns": len(self.values),
            "of_turns": len(self.run.masks),
        }

    def per_dialogue(self, values: NDArray[Any]) -> NDArray[Any]:
        """Adds up the turns of each dialogue. Shape (T, ...) to (dialogues, ...)."""
        totals = np.zeros((len(self.run.corpus), *values.shape[1:]), values.dtype)
        np.add.at(totals, self.dialogue_of, values)
        return totals

    def shares(self, flagged: NDArray[np.bool_], **options: int) -> Estimate:
        """Scores K sets of flagged turns, shape (T, K), by four measures. Shape (4, K)."""
        positive, every = self.positive[:, None], np.ones_like(flagged)
        hits = (flagged & positive, flagged & ~positive, every & positive, every & ~positive)
        rows = self.per_dialogue(np.stack(hits, axis=1).astype(np.int64))
        return bootstrap(rows, _shares, **options)["shares"]

    def at_every_threshold(self, levels: Floats) -> Floats:
        """Scores every threshold of the ascending ``levels``, without intervals. Shape (4, K)."""
        place = np.searchsorted(levels, self.values)
        # A turn is flagged by every threshold up to its own probability.
        tp, fp = (
            np.bincount(place[chosen], minlength=len(levels))[::-1].cumsum()[::-1]
            for chosen in (self.positive, ~self.positive)
        )
        totals = [tp, fp, np.full_like(tp, tp[0]), np.full_like(fp, fp[0])]
        return _shares(np.array(totals, dtype=np.float64))["shares"]


def thresholds(
    runs: Sequence[Predictions],
    *,
    recalls: Sequence[float] = (0.5, 0.8, 0.9),
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Moves the threshold of runs for any label, for alerts and for confirms.

    Args:
        runs: Runs; those that stored no log-probabilities are left out.
        recalls: Shares of the positive turns; the highest threshold that reaches each of them has
            an interval.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        One row for each measure and threshold, thresholds ascending: every distinct probability of
        the run, so that the lowest flags every turn. The model's own predictions come last.

        - ``system``, ``over`` (str): the model's name; over which dialogues the run was.
        - ``wanted`` (str): what is looked for: ``any``, ``alert`` or ``confirm``.
        - ``threshold`` (float): a probability; NaN for the model's own predictions.
        - ``measure`` (str): ``recall``, ``precision``, ``f1``, or ``flagged``, the share of the
          turns that are not positive that is flagged.
        - ``value``, ``low``, ``high`` (float): a share from 0 to 1; NaN for what is undefined. Its
          95 % interval is computed for the model's own predictions, for the thresholds of
          ``recalls``, and for 41 thresholds that are evenly spaced over the turns; NaN for others.
        - ``positives``, ``turns``, ``of_turns`` (int): user turns with what is wanted among those
          whose choices are stored and fit their answer; these; and all of the run.

        ``attrs["signature"]`` is what the runs were measured under.
    """
    parts = []
    for found in _scored_turns(runs, STAGES):
        levels, values = np.unique(found.values), found.values
        every = found.at_every_threshold(levels)
        chosen = [np.quantile(values, np.linspace(0, 1, _BAND), method="inverted_cdf")]
        chosen += [levels[every[0] >= share][-1:] for share in recalls]
        columns = np.searchsorted(levels, np.unique(np.concatenate(chosen)))
        flagged = np.column_stack([values[:, None] >= levels[columns], found.tagged])
        few = found.shares(flagged, draws=draws, seed=seed)
        low, high = np.full((2, len(_SHARES), len(levels) + 1), np.nan)
        columns = np.append(columns, len(levels))
        low[:, columns], high[:, columns] = few.low, few.high
        curve = Estimate(np.column_stack([every, few.value[:, -1]]), low, high)
        frame = curve.to_frame(measure=_SHARES, threshold=[*levels, np.nan])
        parts.append(frame.assign(**found.about()))
    return _frame(parts, ["threshold", "measure"], runs, draws=draws, seed=seed)


def bias_effects(runs: Sequence[Predictions]) -> pd.DataFrame:
    """Counts the turns on which ``none_bias`` changed what a model wrote.

    Args:
        runs: Runs; those without stored log-probabilities, or without a bias, are left out.

    Returns:
        One row for each run.

        - ``system`` (str): the model's name.
        - ``none_bias`` (float): what was added to the log-probability of ``none`` at the first
          choice of every answer.
        - ``changed`` (int): user turns on which another branch is the likeliest without it.
        - ``turns`` (int): user turns whose choices are stored.
    """
    rows = []
    for run in runs:
        bias = run.record.decoding.get("none_bias")
        first = [choices[0] for choices in run.choices if choices]
        if bias and first:
            changed = sum(_likeliest(choice) != _likeliest(choice, bias) for choice in first)
            rows.append((run.record.name, float(bias), changed, len(first)))
    return pd.DataFrame(rows, columns=["system", "none_bias", "changed", "turns"])


def _likeliest(choice: Choice, bias: float = 0.0) -> str:
    """Finds the likeliest branch of a first choice with a bias on ``none``."""
    return max(choice, key=lambda text: choice[text] + bias * NONE.startswith(text.strip()))


def threshold_scores(
    runs: Sequence[Predictions], *, draws: int = DRAWS, seed: int = 0
) -> pd.DataFrame:
    """Scores the probabilities of each label without a threshold.

    Args:
        runs: Runs; those that stored no log-probabilities are left out.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        One row for each measure of the module, and each of any label, the stages, and the labels
        with at least 20 positive turns (``wanted``), with the columns of :func:`thresholds` but
        for ``threshold``. Areas are NaN where no turn or every turn is positive. One row more for
        each run, ``on_branches`` (``wanted`` is ``any``, without interval), is the median over the
        turns of the probability of all branches of the first choice, out of the whole vocabulary.
    """
    parts = []
    for run in runs:
        every = [
            found
            for found in _scored_turns([run], SCOPES)
            if found.wanted in STAGES or found.positive.sum() >= ENOUGH
        ]
        for found in every:
            areas = bootstrap(_ranks(found), _areas, draws=draws, seed=seed)["areas"]
            squares = bootstrap(_squares(found), _brier, draws=draws, seed=seed)["brier"]
            parts += [
                areas.to_frame(measure=_AREAS).assign(**found.about()),
                squares.to_frame(measure=_BRIER).assign(**found.about()),
            ]
        if every:
            held = np.median([share_on_branches(choices[0]) for choices in run.choices if choices])
            last = pd.DataFrame({"measure": ["on_branches"], "value": [float(held)]})
            parts.append(last.assign(**every[0].about()))
    return _frame(parts, ["measure"], runs, draws=draws, seed=seed)


def reliability(runs: Sequence[Predictions], *, draws: int = DRAWS, seed: int = 0) -> pd.DataFrame:
    """Compares probabilities with observed frequencies.

    Args:
        runs: Runs; those that stored no log-probabilities are left out.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        One row for each tenth of the turns by their probability, fewer where these are equal.

        - ``system``, ``over``, ``wanted``, ``positives``, ``turns``, ``of_turns``: as
          :func:`thresholds` has them.
        - ``chance`` (float): the mean probability of a tenth; ``size`` (int): its turns.
        - ``value``, ``low``, ``high`` (float): the share of it that is positive, and its interval.
    """
    parts = []
    for found in _scored_turns(runs, STAGES):
        edges = np.unique(np.quantile(found.values, np.linspace(0, 1, _BINS + 1)))
        place = np.searchsorted(edges[1:-1], found.values)
        member = place[:, None] == np.unique(place)
        both = np.stack([member & found.positive[:, None], member], axis=1)
        rows = found.per_dialogue(both.astype(np.int64))
        came = bootstrap(rows, _came_true, draws=draws, seed=seed)["share"]
        size = member.sum(axis=0)
        means = (member * found.values[:, None]).sum(axis=0) / size
        part = came.to_frame(chance=means.tolist()).assign(size=size)
        parts.append(part.assign(**found.about()))
    return _frame(parts, ["chance", "size"], runs, draws=draws, seed=seed)


def chosen_thresholds(
    runs: Sequence[Predictions],
    dev: Sequence[Predictions],
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Chooses thresholds on dev and scores them on other dialogues.

    Args:
        runs: The runs to score; those that stored no log-probabilities are left out.
        dev: Runs of the same models over other dialogues; a run without one is left out.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        For each run the threshold with the highest F1 on its dev run, and the measures at it, as
        :func:`thresholds` gives them.

    Raises:
        ScoringError: If a run and its dev run share their dialogues.
    """
    parts = []
    others = {(each.run.record.model, each.wanted): each for each in _scored_turns(dev, STAGES)}
    for found in _scored_turns(runs, STAGES):
        run = found.run
        other = others.get((run.record.model, found.wanted))
        if other is None:
            continue
        if other.run.corpus.fingerprint == run.corpus.fingerprint:
            raise ScoringError(
                f"{run.record.name}: both runs are over {run.corpus.name}. Choose a "
                "threshold on other dialogues than those it is scored on."
            )
        best = _best_threshold(other.values, other.positive)
        scores = found.shares(found.values[:, None] >= best, draws=draws, seed=seed)
        frame = scores.to_frame(measure=_SHARES, threshold=[best])
        parts.append(frame.assign(**found.about()))
    return _frame(parts, ["threshold", "measure"], runs, draws=draws, seed=seed)


def _scored_turns(runs: Sequence[Predictions], scopes: Iterable[str]) -> Iterator[_ScoredTurns]:
    for run in runs:
        read = [
            slot_probabilities(choices, answer) if choices else None
            for choices, answer in zip(run.choices, run.answers, strict=False)
        ]
        kept = [row for row, slots in enumerate(read) if slots is not None]
        if not kept:
            continue
        each = [slots for slots in read if slots is not None]
        by_slot = np.zeros((len(each), max(map(len, each)), len(LABELS)))
        for row, slots in enumerate(each):
            by_slot[row, : len(slots)] = slots
        for wanted in scopes:
            gold, tagged = (
                (masks[kept] & np.uint16(SCOPES[wanted])) != 0
                for masks in (run.corpus.gold, run.masks)
            )
            values = probability(by_slot, SCOPES[wanted])
            yield _ScoredTurns(run, wanted, values, gold, tagged, run.corpus.dialogue_of[kept])


def _best_threshold(values: Floats, positive: NDArray[np.bool_]) -> float:
    """Finds the lowest of the thresholds with the highest F1."""
    order = np.argsort(-values)
    flagged = np.arange(1, len(values) + 1)
    scores = f1(np.cumsum(positive[order]), flagged + positive.sum(), 0.0)
    falling = values[order]
    # Turns of equal probability are all flagged.
    ends = np.flatnonzero(np.append(falling[1:] != falling[:-1], True))[::-1]
    return float(falling[ends[np.argmax(scores[ends])]])


def _frame(
    parts: Sequence[pd.DataFrame],
    own: Sequence[str],
    runs: Sequence[Predictions],
    *,
    draws: int,
    seed: int,
) -> pd.DataFrame:
    columns = [*_ABOUT, *own, *_ESTIMATE, *_SIZES]
    frame = pd.DataFrame(columns=columns).astype(dict.fromkeys(_ESTIMATE, float))
    if parts:
        frame = pd.concat(parts, ignore_index=True).reindex(columns=columns)
    told = [run for run in runs if run.record.name in set(frame["system"])]
    signatures = [signature_of(run, Conventions(), draws=draws, seed=seed) for run in told]
    return signed(frame, *signatures)


def _shares(totals: Floats) -> dict[str, Floats]:
    tp, fp, positive, negative = (totals[..., i, :] for i in range(4))
    values = (
        ratio(tp, positive),
        ratio(tp, tp + fp),
        f1(tp, tp + fp + positive),
        ratio(fp, negative),
    )
    return {"shares": np.stack(values, axis=-2)}


def _ranks(found: _ScoredTurns) -> NDArray[np.int64]:
    """Counts positive and other turns at each probability of a positive turn, and in between.

    Both areas are made of these, for every draw. Shape (dialogues, 2, 2 J + 1) for J such values,
    ascending.
    """
    levels = np.unique(found.values[found.positive])
    place = np.searchsorted(levels, found.values)
    place += np.searchsorted(levels, found.values, side="right")
    rows = np.zeros((len(found.run.corpus), 2, 2 * len(levels) + 1), dtype=np.int64)
    np.add.at(rows, (found.dialogue_of, np.where(found.positive, 0, 1), place), 1)
    return rows


def _areas(totals: Floats) -> dict[str, Floats]:
    positive, other = totals[..., 0, :], totals[..., 1, :]
    pairs = positive.sum(axis=-1) * other.sum(axis=-1)
    won = (positive * (other.cumsum(axis=-1) - other / 2)).sum(axis=-1)
    above = positive[..., ::-1].cumsum(axis=-1)[..., ::-1]
    flagged = above + other[..., ::-1].cumsum(axis=-1)[..., ::-1]
    average = (positive * ratio(above, flagged, 0.0)).sum(axis=-1)
    defined = np.where(pairs > 0, positive.sum(axis=-1), 0)
    return {"areas": np.stack([ratio(won, pairs), ratio(average, defined)], axis=-1)}


def _squares(found: _ScoredTurns) -> Floats:
    positive = found.positive.astype(np.float64)
    squares = (found.values - positive) ** 2
    return found.per_dialogue(np.column_stack([squares, positive, np.ones_like(positive)]))


def _brier(totals: Floats) -> dict[str, Floats]:
    squares, positive, turns = np.moveaxis(totals, -1, 0)
    prevalence = ratio(positive, turns)
    return {"brier": np.stack([ratio(squares, turns), prevalence * (1 - prevalence)], axis=-1)}


def _came_true(totals: Floats) -> dict[str, Floats]:
    return {"share": ratio(totals[..., 0, :], totals[..., 1, :])}
