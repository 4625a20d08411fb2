"""What if a model had to be surer, or less sure? What its stored probabilities are worth.

A model under constrained decoding stores the log-probability of each branch at every fork of an
answer, from which :mod:`~cradle_lib.scoring.robustness.forks` computes how likely a label of each
kind was. A turn is *flagged* if this chance is at least a threshold, and *positive* if it has a
gold label of the kind. The model's own tags are no threshold: it takes the likeliest branch at
each fork. They are a point of their own beside each curve.

Only the answers that were given are looked at. With another threshold the model would have seen
other tags of its own in the later turns of a dialogue, and its chances there would be others: a
curve says what the stored answers hold, not what a new run would give.

Measures:
    ``roc_area``: how often a positive turn has the larger chance of a positive one and another, a
    tie counting half; 0.5 for chance alone.
    ``pr_area``: average precision; the prevalence for chance alone.
    ``brier``: mean squared difference between the chance and 1 for a positive turn, 0 for another.
    ``brier_of_prevalence``: the same if every turn had the prevalence for its chance, p (1 - p).

References:
    Davis and Goadrich, "The Relationship Between Precision-Recall and ROC Curves", ICML 2006;
    Brier, "Verification of Forecasts Expressed in Terms of Probability", 1950.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cradle_lib.errors import ScoringError
from cradle_lib.labels import LABELS
from cradle_lib.scoring.robustness.forks import chance, on_branches, places
from cradle_lib.scoring.timing.occurrences import SCOPES, STAGES
from cradle_lib.statistics.bootstrap import DRAWS, Estimate, bootstrap
from cradle_lib.statistics.rates import Floats, f1, ratio

if TYPE_CHECKING:
    from cradle_lib.detection.journals.predictions import Predictions

_STEPS: Final = 41
_BINS: Final = 10
_SHARES: Final = ("recall", "precision", "f1", "flagged")
_AREAS: Final = ("roc_area", "pr_area", "brier", "brier_of_prevalence")
_ABOUT: Final = ("system", "over", "wanted")
_SIZES: Final = ("positives", "turns", "of_turns")
_ESTIMATE: Final = ("value", "low", "high")


@dataclass(frozen=True)
class _Chances:
    """The turns of a run whose forks are stored, T of them, and what is looked for on them."""

    run: Predictions
    by_scope: dict[str, Floats]
    gold: dict[str, NDArray[np.bool_]]
    tagged: dict[str, NDArray[np.bool_]]
    dialogue_of: NDArray[np.int64]

    def about(self, wanted: str) -> dict[str, Any]:
        """What every row of a frame says."""
        return {
            "system": self.run.record.name,
            "over": self.run.over,
            "wanted": wanted,
            "positives": int(self.gold[wanted].sum()),
            "turns": len(self.dialogue_of),
            "of_turns": len(self.run.masks),
        }

    def per_dialogue(self, values: NDArray[Any]) -> NDArray[Any]:
        """Adds up the turns of each dialogue. Shape (T, ...) to (dialogues, ...)."""
        turns = np.arange(len(values))
        size = (len(self.run.corpus), len(values))
        member = csr_array((np.ones(len(values), values.dtype), (self.dialogue_of, turns)), size)
        return np.asarray(member @ values.reshape(len(values), -1)).reshape(-1, *values.shape[1:])

    def shares(
        self, wanted: str, flagged: NDArray[np.bool_], **options: int
    ) -> dict[str, Estimate]:
        """Scores sets of flagged turns. Shape (T, K) to (K,) each."""
        positive = self.gold[wanted][:, None]
        every = np.ones_like(flagged)
        hits = (flagged & positive, flagged & ~positive, every & positive, every & ~positive)
        rows = self.per_dialogue(np.stack(hits, axis=1).astype(np.int64))
        return bootstrap(rows, _shares, **options)


def thresholds(runs: Sequence[Predictions], *, draws: int = DRAWS, seed: int = 0) -> pd.DataFrame:
    """Moves the threshold of runs for any label, for alerts and for confirms.

    Args:
        runs: Runs; those that stored no log-probabilities are left out.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Their seed.

    Returns:
        One row for each threshold and measure, thresholds ascending; at the lowest every turn is
        flagged. The model's own tags come last.

        - ``system``, ``over`` (str): the model's name; over which dialogues the run was.
        - ``wanted`` (str): what is looked for: ``any``, ``alert`` or ``confirm``.
        - ``threshold`` (float): a chance from 0 to 1; NaN for the model's own tags.
        - ``measure`` (str): ``recall``, ``precision``, ``f1``, or ``flagged``, the share of the
          turns that are not positive that is flagged.
        - ``value``, ``low``, ``high`` (float): a share from 0 to 1 with its 95 % interval; NaN for
          what is undefined or was not computed.
        - ``positives``, ``turns``, ``of_turns`` (int): user turns with what is wanted among those
          whose forks are stored and fit their answer; these; and all of the run.
    """
    parts = []
    for found in _chances(runs):
        for wanted in STAGES:
            values = found.by_scope[wanted]
            steps = np.unique(np.quantile(values, np.linspace(0, 1, _STEPS), method="inverted_cdf"))
            flagged = np.column_stack([values[:, None] >= steps, found.tagged[wanted]])
            shares = found.shares(wanted, flagged, draws=draws, seed=seed)
            parts += [
                shares[name]
                .to_frame(threshold=[*steps, np.nan])
                .assign(measure=name, **found.about(wanted))
                for name in _SHARES
            ]
    return _frame(parts, "threshold", "measure")


def threshold_scores(
    runs: Sequence[Predictions], *, draws: int = DRAWS, seed: int = 0
) -> pd.DataFrame:
    """Scores the chances of every label without a threshold.

    Args:
        runs: Runs; those that stored no log-probabilities are left out.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Their seed.

    Returns:
        One row for each measure of the module, and each of any label, the stages and the labels
        (``wanted``), with the columns of :func:`thresholds` but for ``threshold``. Areas are NaN
        where no turn or every turn is positive. One row more for each run, ``on_branches``
        (``wanted`` is ``any``, without interval), is the median over the turns of the probability
        that the branches of the first fork hold together, out of the whole vocabulary.
    """
    parts = []
    for found in _chances(runs):
        firsts = [on_branches(choices[0]) for choices in found.run.choices if choices]
        for wanted in SCOPES:
            areas = bootstrap(_ranks(found, wanted), _areas, draws=draws, seed=seed)
            squares = bootstrap(_squares(found, wanted), _brier, draws=draws, seed=seed)
            own = {name: (areas | squares)[name].to_frame(measure=[name]) for name in _AREAS}
            parts += [frame.assign(**found.about(wanted)) for frame in own.values()]
        last = pd.DataFrame({"measure": ["on_branches"], "value": [float(np.median(firsts))]})
        parts.append(last.assign(**found.about("any")))
    return _frame(parts, "measure")


def reliability(runs: Sequence[Predictions], *, draws: int = DRAWS, seed: int = 0) -> pd.DataFrame:
    """Compares the chances with how often they came true.

    Args:
        runs: Runs; those that stored no log-probabilities are left out.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Their seed.

    Returns:
        One row for each tenth of the turns by their chance, fewer where chances are equal.

        - ``system``, ``over``, ``wanted``, ``positives``, ``turns``, ``of_turns``: as
          :func:`thresholds` has them.
        - ``chance`` (float): the mean chance of a tenth; ``size`` (int): its turns.
        - ``value``, ``low``, ``high`` (float): the share of it that is positive, and its interval.
    """
    parts = []
    for found in _chances(runs):
        for wanted in STAGES:
            values = found.by_scope[wanted]
            edges = np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)))
            place = np.searchsorted(edges[1:-1], values)
            member = place[:, None] == np.unique(place)
            both = np.stack([member & found.gold[wanted][:, None], member], axis=1)
            rows = found.per_dialogue(both.astype(np.int64))
            came = bootstrap(rows, _came_true, draws=draws, seed=seed)["share"]
            size = member.sum(axis=0)
            means = (member * values[:, None]).sum(axis=0) / size
            part = came.to_frame(chance=means.tolist()).assign(size=size)
            parts.append(part.assign(**found.about(wanted)))
    return _frame(parts, "chance", "size")


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
        seed: Their seed.

    Returns:
        For each run the threshold with the highest F1 on its dev run, and the measures at it, as
        :func:`thresholds` gives them.

    Raises:
        ScoringError: If a run and its dev run share their dialogues.
    """
    parts = []
    others = {found.run.record.model: found for found in _chances(dev)}
    for found in _chances(runs):
        other = others.get(found.run.record.model)
        if other is None:
            continue
        if other.run.corpus.fingerprint == found.run.corpus.fingerprint:
            raise ScoringError(
                f"{found.run.record.name}: both runs are over {found.run.corpus.name}. Choose a "
                "threshold on other dialogues than those it is scored on."
            )
        for wanted in STAGES:
            best = _best_threshold(other.by_scope[wanted], other.gold[wanted])
            shares = found.shares(
                wanted, found.by_scope[wanted][:, None] >= best, draws=draws, seed=seed
            )
            parts += [
                shares[name].to_frame(threshold=[best]).assign(measure=name, **found.about(wanted))
                for name in _SHARES
            ]
    return _frame(parts, "threshold", "measure")


def _chances(runs: Sequence[Predictions]) -> list[_Chances]:
    found = []
    for run in runs:
        read = [places(c, a) if c else None for c, a in zip(run.choices, run.answers, strict=False)]
        kept = np.array(
            [row for row, place in enumerate(read) if place is not None], dtype=np.int64
        )
        if not len(kept):
            continue
        each = [place for place in read if place is not None]
        by_place = np.zeros((len(each), max(map(len, each)), len(LABELS)))
        for row, place in enumerate(each):
            by_place[row, : len(place)] = place
        found.append(
            _Chances(
                run,
                {name: chance(by_place, m) for name, m in SCOPES.items()},
                {name: (run.corpus.gold[kept] & np.uint16(m)) != 0 for name, m in SCOPES.items()},
                {name: (run.masks[kept] & np.uint16(m)) != 0 for name, m in SCOPES.items()},
                run.corpus.dialogue_of[kept],
            )
        )
    return found


def _best_threshold(values: Floats, positive: NDArray[np.bool_]) -> float:
    """Finds the lowest of the thresholds with the highest F1."""
    order = np.argsort(-values)
    flagged = np.arange(1, len(values) + 1)
    scores = f1(np.cumsum(positive[order]), flagged + positive.sum(), 0.0)
    falling = values[order]
    # Of equal chances all are flagged.
    ends = np.flatnonzero(np.append(falling[1:] != falling[:-1], True))[::-1]
    return float(falling[ends[np.argmax(scores[ends])]])


def _frame(parts: Sequence[pd.DataFrame], *own: str) -> pd.DataFrame:
    columns = [*_ABOUT, *own, *_ESTIMATE, *_SIZES]
    if not parts:
        return pd.DataFrame(columns=columns)
    return pd.concat(parts, ignore_index=True).reindex(columns=columns)


def _shares(totals: Floats) -> dict[str, Floats]:
    tp, fp, positive, negative = (totals[..., i, :] for i in range(4))
    values = (
        ratio(tp, positive),
        ratio(tp, tp + fp),
        f1(tp, tp + fp + positive),
        ratio(fp, negative),
    )
    return dict(zip(_SHARES, values, strict=True))


def _ranks(found: _Chances, wanted: str) -> NDArray[np.int64]:
    """Counts positive and other turns at each chance that a positive turn has, and in between.

    Both areas are made of these, for every draw. Shape (dialogues, 2, 2 J + 1) for J such chances,
    ascending.
    """
    values, positive = found.by_scope[wanted], found.gold[wanted]
    levels = np.unique(values[positive])
    place = np.searchsorted(levels, values) + np.searchsorted(levels, values, side="right")
    rows = np.zeros((len(found.run.corpus), 2, 2 * len(levels) + 1), dtype=np.int64)
    np.add.at(rows, (found.dialogue_of, np.where(positive, 0, 1), place), 1)
    return rows


def _areas(totals: Floats) -> dict[str, Floats]:
    positive, other = totals[..., 0, :], totals[..., 1, :]
    pairs = positive.sum(axis=-1) * other.sum(axis=-1)
    won = (positive * (other.cumsum(axis=-1) - other / 2)).sum(axis=-1)
    above = positive[..., ::-1].cumsum(axis=-1)[..., ::-1]
    flagged = above + other[..., ::-1].cumsum(axis=-1)[..., ::-1]
    average = (positive * ratio(above, flagged, 0.0)).sum(axis=-1)
    defined = np.where(pairs > 0, positive.sum(axis=-1), 0)
    return {"roc_area": ratio(won, pairs), "pr_area": ratio(average, defined)}


def _squares(found: _Chances, wanted: str) -> Floats:
    positive = found.gold[wanted].astype(np.float64)
    squares = (found.by_scope[wanted] - positive) ** 2
    return found.per_dialogue(np.column_stack([squares, positive, np.ones_like(positive)]))


def _brier(totals: Floats) -> dict[str, Floats]:
    squares, positive, turns = np.moveaxis(totals, -1, 0)
    prevalence = ratio(positive, turns)
    return {"brier": ratio(squares, turns), "brier_of_prevalence": prevalence * (1 - prevalence)}


def _came_true(totals: Floats) -> dict[str, Floats]:
    return {"share": ratio(totals[..., 0, :], totals[..., 1, :])}
