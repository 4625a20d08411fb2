"""How far two annotators agree, with intervals, and without numbers where there are none.

Measures, all between two annotators (several pairs are pooled):

``exact_match``
    Share of units on which both gave the same set.
``jaccard``
    What both gave over what either gave.
``kappa``
    Cohen's kappa. Without a label it is pooled: one binary decision for each unit and label.
``f1``
    F1 of one annotator against the other: 2 both / (2 both + one + other). It is the same
    number as positive agreement, needs no agreement on absence, and is therefore the one to
    read for rare labels (Cicchetti and Feinstein 1990).
``pabak``
    2 p - 1: kappa without prevalence and bias (Byrt, Bishop and Carlin 1993).
``ac1``
    Gwet's AC1 (2008), which assumes chance agreement on hard units only.
``alpha``, ``alpha_masi``
    Krippendorff's alpha over whole label sets with nominal and with MASI distance. For one
    label both are the same.
``within_1``, ``within_2``
    As ``f1``, but the same label within so many user turns counts as a match.

The unit set decides what kappa, PABAK, AC1 and alpha mean, so it is part of every result.
Leaving out the turns that nobody labelled, as the paper does, takes away most agreement on
absence: kappa falls, PABAK falls further, and F1 and Jaccard stay as they are.

Intervals are 95 % percentile intervals over resampled dialogues. There is none where the draws
have nothing to say: where many of them lack the label, or where they are all alike, as with a
single dialogue or with annotators who never differed.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Appendix B.2; Krippendorff, Content Analysis (2004);
    Passonneau (2006) for MASI; Efron and Tibshirani (1993), ch. 13.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from cradle_lib.annotation.pairs import WINDOWS, Floats, Ints, Pair, Tallies, Units, masi, tally
from cradle_lib.labels import LABELS

MEASURES: Final = (
    "exact_match",
    "jaccard",
    "kappa",
    "f1",
    "pabak",
    "ac1",
    "alpha",
    "alpha_masi",
    *(f"within_{window}" for window in WINDOWS if window),
)
DRAWS: Final = 10_000
_TAIL: Final = 2.5
# With more undefined draws than this, an interval over the rest would not be a 95 % one.
_UNDEFINED: Final = 0.05
# An interval without width would claim certainty; rounding alone makes a hair of it.
_ALIKE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Estimate:
    """One measure.

    Attributes:
        value: The measure; NaN where it is not defined.
        low: Lower bound of the interval, NaN where there is none.
        high: Upper bound.
        reason: Why the value or its bounds are missing; empty if they are not.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    reason: str = ""


@dataclass(frozen=True)
class Agreement:
    """Agreement on one unit set, as a whole and for each label.

    Attributes:
        units: The unit set.
        annotators: Who is compared, such as ``A and B``.
        dialogues: Number of dialogues.
        turns: Number of units.
        exact: Units with equal sets.
        given: For each label, how often both, only the first and only the second gave it.
        overall: Measures over all labels together.
        labels: Measures of each label.
    """

    units: Units
    annotators: str
    dialogues: int
    turns: int
    exact: int
    given: dict[str, tuple[int, int, int]]
    overall: dict[str, Estimate]
    labels: dict[str, dict[str, Estimate]]


def agreement(
    chosen: Sequence[Pair], *, units: Units = "labelled", draws: int = DRAWS, seed: int = 0
) -> Agreement:
    """Measures agreement.

    Args:
        chosen: One pair, or several to be pooled, as :func:`pairs` gives them.
        units: The unit set.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Their seed.

    Returns:
        All measures of :data:`MEASURES`, overall and for each label.
    """
    tallies = tally(chosen, units)
    whole = _Totals.of(tallies, np.ones((1, len(tallies.turns))))
    drawn = None
    if draws:
        drawn = _Totals.of(tallies, _weights(len(tallies.turns), draws, seed))
    overall = {name: _estimate(name, None, whole, drawn) for name in MEASURES}
    labels = {
        label: {name: _estimate(name, index, whole, drawn) for name in MEASURES}
        for index, label in enumerate(LABELS)
    }
    cells = tallies.cells.sum(axis=0)
    return Agreement(
        units=units,
        annotators=", ".join(f"{pair.first} and {pair.second}" for pair in chosen),
        dialogues=len(tallies.turns),
        turns=int(tallies.turns.sum()),
        exact=int(tallies.exact.sum()),
        given={
            label: (int(row[0]), int(row[1]), int(row[2]))
            for label, row in zip(LABELS, cells, strict=True)
        },
        overall=overall,
        labels=labels,
    )


def _weights(dialogues: int, draws: int, seed: int) -> Floats:
    generator = np.random.default_rng(seed)
    share = np.full(dialogues, 1 / dialogues)
    return generator.multinomial(dialogues, share, size=draws).astype(np.float64)


@dataclass(frozen=True)
class _Totals:
    """Counts added up, once or in every draw. The leading axis is the draw."""

    turns: Floats
    exact: Floats
    cells: Floats
    matched: Floats
    histogram: Floats
    apart: Floats
    distance: Floats

    @classmethod
    def of(cls, tallies: Tallies, weights: Floats) -> _Totals:
        def add(counts: Ints | Floats) -> Floats:
            flat = counts.reshape(len(counts), -1).astype(np.float64)
            return (weights @ flat).reshape(len(weights), *counts.shape[1:])

        distance = np.array([[masi(a, b) for b in tallies.values] for a in tallies.values])
        return cls(
            turns=add(tallies.turns),
            exact=add(tallies.exact),
            cells=add(tallies.cells),
            matched=add(tallies.matched),
            histogram=add(tallies.histogram),
            apart=add(tallies.apart),
            distance=distance.reshape(len(tallies.values), len(tallies.values)),
        )

    def binary(self, label: int | None) -> tuple[Floats, Floats, Floats, Floats]:
        """Decisions, and those where both, only one and only the other said yes."""
        if label is None:
            both, one, other = self.cells.sum(axis=1).T
            return self.turns * len(LABELS), both, one, other
        both, one, other = self.cells[:, label].T
        return self.turns, both, one, other


def _measure(name: str, label: int | None, totals: _Totals) -> Floats:
    """Computes a measure in every draw; NaN where the label, or every label, is absent."""
    _, both, one, other = totals.binary(label)
    values = _defined(name, label, totals)
    if name == "exact_match" and label is None:
        return values
    return np.where(both + one + other > 0, values, np.nan)


def _defined(name: str, label: int | None, totals: _Totals) -> Floats:
    n, both, one, other = totals.binary(label)
    if name.startswith("within_"):
        window = WINDOWS.index(int(name.removeprefix("within_")))
        hits = totals.matched[:, :, window]
        hits = hits.sum(axis=1) if label is None else hits[:, label]
        return _over(2 * hits, 2 * both + one + other)
    if name == "exact_match" and label is None:
        return _over(totals.exact, totals.turns)
    if name in ("alpha", "alpha_masi") and label is None:
        return _alpha(totals, masi_distance=name == "alpha_masi")
    if name == "jaccard":
        return _over(both, both + one + other)
    if name == "f1":
        return _over(2 * both, 2 * both + one + other)
    observed = _over(n - one - other, n)
    if name == "exact_match":
        return observed
    if name == "pabak":
        return 2 * observed - 1
    yes_one, yes_other = _over(both + one, n), _over(both + other, n)
    if name == "kappa":
        return _corrected(observed, yes_one * yes_other + (1 - yes_one) * (1 - yes_other))
    mean = (yes_one + yes_other) / 2
    if name == "ac1":
        return _corrected(observed, 2 * mean * (1 - mean))
    # Krippendorff's alpha of a binary decision: chance draws two of 2n values without return.
    yes = 2 * both + one + other
    return 1 - _over((one + other) / np.maximum(n, 1), _over(yes * (2 * n - yes), n * (2 * n - 1)))


def _alpha(totals: _Totals, *, masi_distance: bool) -> Floats:
    size = totals.histogram.sum(axis=1)
    if masi_distance:
        spread = np.einsum("dv,dv->d", totals.histogram @ totals.distance, totals.histogram)
        apart = totals.apart[:, 1]
    else:
        spread = size**2 - (totals.histogram**2).sum(axis=1)
        apart = totals.apart[:, 0]
    return 1 - _over(_over(2 * apart, size), _over(spread, size * (size - 1)))


def _over(above: Floats, below: Floats) -> Floats:
    filled = np.full(np.shape(below), np.nan)
    return np.asarray(np.divide(above, below, out=filled, where=below > 0))


def _corrected(observed: Floats, chance: Floats) -> Floats:
    # Rounding may leave chance a hair below 1 where it is 1.
    return _over(observed - chance, np.where(chance > 1 - 1e-12, 0.0, 1 - chance))


def _estimate(name: str, label: int | None, whole: _Totals, drawn: _Totals | None) -> Estimate:
    value = float(_measure(name, label, whole)[0])
    if math.isnan(value):
        return Estimate(value, reason=_reason(name, label, whole))
    if drawn is None:
        return Estimate(value)
    values = _measure(name, label, drawn)
    defined = values[~np.isnan(values)]
    missing = 1 - len(defined) / len(values)
    if missing > _UNDEFINED:
        reason = f"no interval: not defined in {100 * missing:.0f} % of the draws"
        return Estimate(value, reason=reason)
    low, high = np.percentile(defined, [_TAIL, 100 - _TAIL])
    if high - low < _ALIKE:
        return Estimate(value, reason="no interval: nearly all draws are alike")
    return replace(Estimate(value), low=float(low), high=float(high))


def _reason(name: str, label: int | None, whole: _Totals) -> str:
    n, both, one, other = (float(part[0]) for part in whole.binary(label))
    if not n:
        return "there are no units"
    if not both + one + other:
        return "neither annotator gave it" if label is not None else "neither gave any label"
    if name in ("alpha", "alpha_masi"):
        return "only one value was given"
    return "agreement by chance is 1"
