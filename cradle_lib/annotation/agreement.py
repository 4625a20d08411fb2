"""Agreement between two annotators, with intervals.

Measures, all between two annotators (several pairs are pooled):

``exact_match``
    Share of units on which both gave the same set.
``jaccard``
    Labels that both gave, divided by labels that either gave.
``kappa``
    Cohen's kappa. Over all labels it is pooled: one binary decision for each unit and label.
``f1``
    F1 of one annotator against the other: 2 both / (2 both + one + other), also called positive
    agreement. It does not depend on agreement on absence, and so suits rare labels (Cicchetti and
    Feinstein 1990).
``pabak``
    2 p - 1, p being the observed agreement: kappa without prevalence and bias (Byrt, Bishop and
    Carlin 1993).
``ac1``
    Gwet's AC1 (2008), which assumes chance agreement on hard units only.
``alpha``, ``alpha_masi``
    Krippendorff's alpha over whole label sets with nominal and with MASI distance. For one
    label both are the same.
``within_1``, ``within_2``
    As ``f1``, but the same label within one or two user turns counts as a match.

Kappa, PABAK, AC1 and alpha depend on the unit set, so it is part of every result. Leaving out the
turns that nobody labelled, as the paper does, removes most agreement on absence: kappa falls, PABAK
falls further, and F1 and Jaccard do not change.

Jaccard and F1 of single labels have Wilson's interval (:mod:`cradle_lib.statistics.proportions`):
they are shares of occurrences, often of few. All other intervals are those of
:mod:`cradle_lib.statistics.bootstrap`. There is no interval if many draws lack the label or all
draws are equal, as for a single dialogue or for annotators who never differed.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Appendix B.2; Krippendorff, Content Analysis (2004);
    Passonneau (2006) for MASI; Efron and Tibshirani (1993), ch. 13.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd

from cradle_lib.annotation.pairs import (
    UNIT_NAMES,
    UNITS,
    WINDOWS,
    Pair,
    Tallies,
    Units,
    pairs,
    tally,
)
from cradle_lib.annotation.table import Annotations
from cradle_lib.arguments import Seed, checked
from cradle_lib.labels import LABELS, crisis_type, stage
from cradle_lib.statistics.bootstrap import DRAWS, bootstrap
from cradle_lib.statistics.proportions import wilson, wilson_f1
from cradle_lib.statistics.rates import Floats, f1, ratio

_NAMES: Final = {
    "exact_match": "Exact match",
    "jaccard": "Jaccard",
    "kappa": "Cohen's kappa",
    "f1": "F1 (positive agreement)",
    "pabak": "PABAK",
    "ac1": "Gwet's AC1",
    "alpha": "Krippendorff's alpha, nominal",
    "alpha_masi": "Krippendorff's alpha, MASI",
    "within_1": "F1 within one user turn",
    "within_2": "F1 within two user turns",
}
MEASURES: Final = tuple(_NAMES)
#: Display names of measures and unit sets, by their names in the frame.
AGREEMENT_NAMES: Final[Mapping[str, str]] = _NAMES | {
    units: name[0].upper() + name[1:] for units, name in UNIT_NAMES.items()
}
#: The ``label`` of rows over all labels together.
ALL_LABELS: Final = "all labels"
_SIZE: Final = len(LABELS)
# A narrower interval has no width apart from rounding, and would suggest certainty.
_MIN_WIDTH: Final = 1e-9


@checked
def agreement_frame(
    annotations: Annotations,
    *,
    by_round: bool = True,
    units: Sequence[Units] = UNITS,
    draws: int = DRAWS,
    seed: Seed = 0,
) -> pd.DataFrame:
    """Measures the agreement between the two annotators of each team.

    Args:
        annotations: The labels of all annotators.
        by_round: Whether rounds are measured separately.
        units: Unit sets; see :mod:`cradle_lib.annotation.pairs`.
        draws: Bootstrap draws of dialogues behind each interval; 0 for none.
        seed: Seed of the draws.

    Returns:
        One row for each team (and round), unit set, label and measure.

        - ``team`` (str), ``round`` (Int64; missing if rounds are pooled).

        The other columns are those of :func:`agreement`.

    Raises:
        CorpusError: If a dialogue does not have two annotators, or there are none.
    """
    frames = []
    groups = {(entry.team, entry.round if by_round else None) for entry in annotations.entries}
    for team, number in sorted(groups):
        chosen = pairs(annotations, team=team, round_=number)
        for name in units:
            frame = agreement(chosen, units=name, draws=draws, seed=seed)
            frame.insert(0, "team", team)
            frame.insert(1, "round", pd.Series(number, frame.index, dtype="Int64"))
            frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def agreement(
    chosen: Sequence[Pair], *, units: Units = "labelled", draws: int = DRAWS, seed: int = 0
) -> pd.DataFrame:
    """Measures agreement on one unit set, for each label and over all labels together.

    Args:
        chosen: One pair, or several to be pooled, as :func:`.pairs` gives them.
        units: The unit set; see :mod:`cradle_lib.annotation.pairs`.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        One row for each label, then all labels, and each measure.

        - ``annotators`` (str, such as ``A and B``).
        - ``units`` (str): ``labelled``, ``user`` or ``all``; ``dialogues``, ``turns`` (int): their
          numbers.
        - ``label`` (categorical): each label, then ``all labels``. ``kind`` (str): ``all labels``,
          ``alert``, ``confirm``, or ``si_passive``, which the paper reports separately.
        - ``both``, ``one``, ``other`` (int): turns on which both annotators, only the first, or
          only the second gave the label.
        - ``measure`` (str): a name of :data:`MEASURES`.
        - ``value``, ``low``, ``high`` (float): the measure and its 95 % interval, in its own unit;
          NaN if undefined or without an interval.
    """
    tallies = tally(chosen, units)
    n = len(tallies.turns)
    rows = np.concatenate([part.reshape(n, -1) for part in tallies[:-1]], axis=1, dtype=np.float64)
    found = bootstrap(
        rows, lambda t: {"all": _measures(t, tallies.distance)}, draws=draws, seed=seed
    )["all"]
    names = [*LABELS, ALL_LABELS]
    given = np.concatenate([tallies.cells.sum(axis=0), tallies.cells.sum(axis=(0, 1))[None]])
    measured = found.to_frame(label=names, measure=MEASURES)
    about = {
        "annotators": ", ".join(f"{two.first} and {two.second}" for two in chosen),
        "units": units,
        "dialogues": n,
        "turns": int(tallies.turns.sum()),
        "label": pd.Categorical(measured["label"], names),
        "kind": measured["label"].map(_kind),
    }
    counts = zip(("both", "one", "other"), given.repeat(len(MEASURES), axis=0).T, strict=True)
    frame = pd.DataFrame(about | dict(counts) | dict(measured.drop(columns="label")))
    frame.loc[frame["high"] - frame["low"] < _MIN_WIDTH, ["low", "high"]] = np.nan
    if draws:
        for measure, ends in _of_labels(tallies).items():
            single = (frame["measure"] == measure) & (frame["label"] != ALL_LABELS)
            frame.loc[single, ["low", "high"]] = np.stack(ends, axis=-1)
    return frame


def _of_labels(tallies: Tallies) -> dict[str, tuple[Floats, Floats]]:
    """Computes Wilson's intervals of the measures that are shares of a label's occurrences."""
    both, given = tallies.cells[..., 0], tallies.cells.sum(axis=-1)
    sizes = both + given
    found = {"jaccard": wilson(both, given)}
    for place, window in enumerate(WINDOWS):
        matched = tallies.matched[..., place]
        name = f"within_{window}" if window else "f1"
        found[name] = wilson_f1(matched, sizes - 2 * matched)
    return found


def _measures(totals: Floats, distance: Floats) -> Floats:
    """Computes all measures from summed counts in the order of :func:`agreement`, shape (..., C).

    Gives shape (..., 17, 10): each label, then all labels, by :data:`MEASURES`. NaN if the label,
    or every label, is absent, except for the exact match of whole sets.
    """
    ends = np.cumsum([1, 1, 1, 3 * _SIZE, len(WINDOWS) * _SIZE])
    turns, exact, masi_sum, cells, matched, histogram = np.split(totals, ends, axis=-1)
    cells, matched = (
        _with_sum(part.reshape(*part.shape[:-1], _SIZE, -1)) for part in (cells, matched)
    )
    both, one, other = np.moveaxis(cells, -1, 0)
    n = turns * np.append(np.ones(_SIZE), _SIZE)
    sizes = 2 * both + one + other
    observed = ratio(n - one - other, n)
    yes_one, yes_other = ratio(both + one, n), ratio(both + other, n)
    mean = (yes_one + yes_other) / 2
    # Krippendorff's alpha of a binary decision: chance draws 2 of 2n values without replacement.
    alpha = 1 - ratio(ratio(one + other, n), ratio(sizes * (2 * n - sizes), n * (2 * n - 1)))
    found = {
        "exact_match": observed,
        "jaccard": ratio(both, both + one + other),
        "kappa": _corrected(observed, yes_one * yes_other + (1 - yes_one) * (1 - yes_other)),
        "f1": f1(both, sizes),
        "pabak": 2 * observed - 1,
        "ac1": _corrected(observed, 2 * mean * (1 - mean)),
        "alpha": alpha,
        "alpha_masi": alpha.copy(),
        **{
            f"within_{window}": f1(matched[..., place], sizes)
            for place, window in enumerate(WINDOWS)
            if window
        },
    }
    for values in found.values():
        values[both + one + other == 0] = np.nan
    # Over all labels, whole sets are compared instead of one decision for each label.
    labelled = sizes[..., -1] > 0
    found["exact_match"][..., -1] = ratio(exact, turns)[..., 0]
    size = histogram.sum(axis=-1)
    nominal = size**2 - (histogram**2).sum(axis=-1)
    masi = ((histogram @ distance) * histogram).sum(axis=-1)
    differing = (turns - exact)[..., 0], masi_sum[..., 0]
    for name, disagreement, spread in zip(
        ("alpha", "alpha_masi"), differing, (nominal, masi), strict=True
    ):
        chance = ratio(spread, size * (size - 1))
        value = 1 - ratio(ratio(2 * disagreement, size), chance)
        found[name][..., -1] = np.where(labelled, value, np.nan)
    return np.stack([found[name] for name in MEASURES], axis=-1)


def _with_sum(counts: Floats) -> Floats:
    return np.concatenate([counts, counts.sum(axis=-2, keepdims=True)], axis=-2)


def _corrected(observed: Floats, chance: Floats) -> Floats:
    # Rounding can make a chance agreement of 1 slightly smaller.
    return ratio(observed - chance, np.where(chance > 1 - 1e-12, 0.0, 1 - chance))


def _kind(label: str) -> str:
    if label == ALL_LABELS:
        return label
    return "si_passive" if crisis_type(label) == "SI_passive" else stage(label)
