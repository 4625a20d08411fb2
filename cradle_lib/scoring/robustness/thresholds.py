"""What if a model had to be surer, or less sure? Precision and recall as a threshold moves.

A model under constrained decoding chooses between ``none`` and the first token of a label at the
first fork of every answer, and the journal keeps the log-probability of each branch. The log-odds
of "some label" against ``none`` are thus known for every turn; those of one stage against
everything else likewise. The model tags where they exceed 0 (for all labels together only
roughly: it takes the single likeliest branch). Another threshold flags more turns or fewer.

Only the first fork of the answers that were given is looked at. With another threshold the
model would have seen other tags of its own in the later turns of a dialogue, and its odds there
would be others: the curve says what the stored answers hold, not what a new run would give.

A turn is *flagged* if its odds exceed the threshold, and *positive* if it has a gold label of the
kind that is looked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp

from cradle_lib.errors import ScoringError
from cradle_lib.labels import ALERT_MASK, ALL_MASK, CONFIRM_MASK
from cradle_lib.statistics.bootstrap import DRAWS, Estimate, bootstrap
from cradle_lib.statistics.rates import Floats, ratio

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions

Wanted = Literal["any", "alert", "confirm"]
WANTED: Final[tuple[Wanted, ...]] = get_args(Wanted)
_MASKS: Final[dict[Wanted, int]] = {"any": ALL_MASK, "alert": ALERT_MASK, "confirm": CONFIRM_MASK}
_MEASURES: Final = ("recall", "precision", "flagged")
_STEPS: Final = 41
_NAMES: Final[dict[Wanted, str]] = {
    "any": "any label",
    "alert": "an alert",
    "confirm": "a confirm",
}
_COLUMNS: Final = (
    "system", "over", "wanted", "threshold", "measure", "value", "low", "high", "positives",
    "turns", "of_turns",
)  # fmt: skip


@dataclass(frozen=True)
class ThresholdCurve:
    """What is flagged at each threshold. K thresholds, ascending.

    Attributes:
        wanted: What is looked for.
        thresholds: Log-odds. Shape (K,).
        recall: Share of the positive turns that are flagged; NaN without any. Shape (K,).
        precision: Share of the flagged turns that are positive; NaN where nothing is flagged.
        flagged: Share of the turns that are not positive that are flagged; NaN without any.
        even: Position of the threshold 0: even odds, about where the model itself tags.
        turns: User turns with stored odds.
        positives: Those of them that are positive.
    """

    wanted: Wanted
    thresholds: Floats
    recall: Estimate
    precision: Estimate
    flagged: Estimate
    even: int
    turns: int
    positives: int


def log_odds(fork: Mapping[str, float], wanted: Wanted) -> float:
    """Computes how likely an answer is to begin with what is wanted.

    Args:
        fork: Log-probability of each branch at the first fork of an answer, by the text of its
            token; a token is the beginning of ``none``, of alerts or of confirms.
        wanted: ``any`` label, an ``alert`` or a ``confirm``.

    Returns:
        Logarithm of the odds against all other branches; infinite where one side is empty.
    """
    starts = ("alert", "confirm") if wanted == "any" else (wanted,)
    for_it = [p for token, p in fork.items() if any(s.startswith(token.strip()) for s in starts)]
    against = [
        p for token, p in fork.items() if not any(s.startswith(token.strip()) for s in starts)
    ]
    return float(logsumexp(for_it) - logsumexp(against))


def threshold_curve(
    run: Predictions, wanted: Wanted = "any", *, draws: int = DRAWS, seed: int = 0
) -> ThresholdCurve:
    """Moves the threshold over a run's stored odds.

    Args:
        run: A run with constrained decoding; turns without stored odds are left out.
        wanted: What is looked for.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Their seed.

    Returns:
        The curve, at evenly spaced quantiles of the odds (at each of them, if there are few)
        and at 0.

    Raises:
        ScoringError: If the run stored no odds.
    """
    odds, kept = _stored_odds(run, wanted)
    positive = (run.corpus.gold[kept] & np.uint16(_MASKS[wanted])) != 0
    finite = odds[np.isfinite(odds)]
    steps = finite
    if len(finite) > _STEPS:
        steps = np.quantile(finite, np.linspace(0, 1, _STEPS), method="inverted_cdf")
    thresholds = np.unique(np.append(steps, 0.0))
    flagged = odds[:, None] > thresholds
    n = len(run.corpus)
    tallies = np.zeros((n, 4, len(thresholds)), dtype=np.int64)
    hits = (flagged & positive[:, None], flagged & ~positive[:, None])
    everything = np.ones_like(flagged)
    sides = (everything & positive[:, None], everything & ~positive[:, None])
    for place, counted in enumerate((*hits, *sides)):
        np.add.at(tallies[:, place], run.corpus.dialogue_of[kept], counted)
    found = bootstrap(tallies, _measures, draws=draws, seed=seed)
    return ThresholdCurve(
        wanted,
        thresholds,
        **found,
        even=int(np.flatnonzero(thresholds == 0)[0]),
        turns=len(odds),
        positives=int(positive.sum()),
    )


def thresholds(runs: Sequence[Predictions], *, draws: int = DRAWS, seed: int = 0) -> pd.DataFrame:
    """Moves the threshold of runs for any label, for alerts and for confirms.

    Args:
        runs: Runs; those that stored no log-probabilities are left out.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Their seed.

    Returns:
        One row for each threshold and measure, thresholds ascending.

        - ``system``, ``over`` (str): the model's name; over which dialogues the run was.
        - ``wanted`` (str): what is looked for: ``any label``, ``an alert`` or ``a confirm``.
        - ``threshold`` (float): log-odds; 0 is always among them.
        - ``measure`` (str): ``recall``, ``precision``, or ``flagged``, the share of the turns that
          are not positive that is flagged.
        - ``value``, ``low``, ``high`` (float): a share from 0 to 1 with its 95 % interval; NaN for
          what is undefined or was not computed.
        - ``positives``, ``turns``, ``of_turns`` (int): user turns with what is wanted among those
          with stored odds; these; and all of the run.
    """
    parts = []
    for run in runs:
        if not any(run.choices):
            continue
        for wanted in WANTED:
            curve = threshold_curve(run, wanted, draws=draws, seed=seed)
            parts += [
                getattr(curve, measure)
                .to_frame(threshold=curve.thresholds)
                .assign(
                    system=run.record.name,
                    over=run.over,
                    wanted=_NAMES[wanted],
                    measure=measure,
                    positives=curve.positives,
                    turns=curve.turns,
                    of_turns=len(run.masks),
                )
                for measure in _MEASURES
            ]
    if not parts:
        return pd.DataFrame(columns=list(_COLUMNS))
    frame: pd.DataFrame = pd.concat(parts, ignore_index=True)
    return frame.reindex(columns=list(_COLUMNS))


def _stored_odds(run: Predictions, wanted: Wanted) -> tuple[Floats, NDArray[np.int64]]:
    rows = [
        (log_odds(choices[0], wanted), place)
        for place, choices in enumerate(run.choices)
        if choices
    ]
    if not rows:
        raise ScoringError(
            f"{run.record.name} stored no log-probabilities. Take a run with constrained decoding."
        )
    odds, places = zip(*rows, strict=True)
    return np.array(odds, dtype=np.float64), np.array(places, dtype=np.int64)


def _measures(totals: Floats) -> dict[str, Floats]:
    tp, fp, positive, negative = (totals[..., i, :] for i in range(4))
    measures = (ratio(tp, positive), ratio(tp, tp + fp), ratio(fp, negative))
    return dict(zip(_MEASURES, measures, strict=True))
