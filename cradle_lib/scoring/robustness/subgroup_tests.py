"""Whether a run finds labels equally well in all parts of a corpus, and whether runs differ in it.

Whether a gold label is found is a yes or no that depends on other labels of its dialogue. So a
logistic regression is fitted by generalized estimating equations, with the dialogue as the
cluster, and the terms of a factor are tested together by Wald's test with robust errors. Position
is a covariate: late scenarios must not look hard because late turns are.

References:
    Liang and Zeger, "Longitudinal Data Analysis Using Generalized Linear Models", Biometrika 73,
    1986.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from cradle_lib.detection.journals.predictions import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.scoring.comparison.ranking import adjust
from cradle_lib.scoring.core.conventions import Conventions
from cradle_lib.scoring.core.evaluate import signature_of
from cradle_lib.scoring.core.signature import shared, signed
from cradle_lib.scoring.errors.taxonomy import label_pairs

FACTORS: Final = ("scenario", "timing")
ALL_RUNS: Final = "all runs"
# Log-odds beyond this mean that a factor separates hits from misses: nothing can be tested.
_SEPARATED: Final = 15.0


def subgroup_tests(runs: Sequence[Predictions]) -> pd.DataFrame:
    """Tests whether the share of gold labels found depends on scenario, timing or position.

    Args:
        runs: Runs over the same dialogues of a corpus that knows scenario and timing.

    Returns:
        For each run a row for each term, and for all runs together one for each interaction.

        - ``system`` (str): the run, or :data:`ALL_RUNS`.
        - ``term`` (str): ``scenario``, ``timing`` or ``position`` (of the user turn, adjusted for
          each other), ``system by scenario`` or ``system by timing``.
        - ``statistic`` (float): Wald's chi-square; ``df`` (float): its degrees of freedom.
        - ``p``, ``adjusted_p`` (float): adjusted by Holm over all rows. NaN, as the statistic,
          where the model can't be fitted: for a run that finds all labels or none, or a part
          in which it does.

        ``attrs["signature"]`` is what the runs were scored under.

    Raises:
        ScoringError: If there is no run, or the corpus does not know scenario and timing.
    """
    if not runs:
        raise ScoringError("no run to test. Give at least one.")
    frames = {run.record.name: _hits(run) for run in runs}
    rows: list[dict[str, Any]] = []
    for system, hits in frames.items():
        terms = wald_terms(hits, "hit ~ C(scenario) + C(timing) + position")
        for name in (*FACTORS, "position"):
            found = terms.get("position" if name == "position" else f"C({name})", {})
            rows.append({"system": system, "term": name, **found})
    # A run without a hit or a miss would have infinite terms of its own.
    able = {name: hits for name, hits in frames.items() if 0 < hits["hit"].mean() < 1}
    if len(able) > 1:
        every = pd.concat(hits.assign(system=name) for name, hits in able.items())
        for factor in FACTORS:
            terms = wald_terms(every, f"hit ~ C(system) * C({factor}) + position")
            found = terms.get(f"C(system):C({factor})", {})
            rows.append({"system": ALL_RUNS, "term": f"system by {factor}", **found})
    frame = pd.DataFrame(rows, columns=["system", "term", "statistic", "df", "p"])
    numbers = ["statistic", "df", "p"]
    frame[numbers] = frame[numbers].astype(float)
    frame["adjusted_p"] = adjust(frame["p"].to_numpy(), "holm")
    return signed(frame, shared([signature_of(run, Conventions()) for run in runs]))


def _hits(run: Predictions) -> pd.DataFrame:
    pairs = label_pairs(run)
    absent = [name for name in FACTORS if name not in pairs]
    if absent:
        raise ScoringError(
            f"{run.corpus.name} does not say the {' and '.join(absent)} of its dialogues. "
            "Add the columns to the corpus, or leave this test out."
        )
    gold = pairs[pairs["gold"] != "none"]
    hits = gold[["dialogue", "position", *FACTORS]].assign(hit=gold["category"].isna().astype(int))
    return hits.astype({"position": float})


def wald_terms(data: pd.DataFrame, formula: str) -> dict[str, dict[str, float]]:
    """Tests the terms of a logistic regression, a formula of patsy, with dialogues as clusters.

    The data have one row for each gold label, with ``hit`` (0 or 1), ``dialogue``, and the columns
    that the formula names. Gives ``statistic``, ``df`` and ``p`` of each term; nothing if the model
    can't be fitted, as where a factor tells hits and misses apart completely.
    """
    if data["hit"].nunique() < 2:
        return {}
    # Takes a second to import, which no command should wait for that has no use for it.
    from statsmodels.genmod.cov_struct import Exchangeable
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_estimating_equations import GEE

    model = GEE.from_formula(
        formula,
        "dialogue",
        data.reset_index(drop=True),
        family=Binomial(),
        cov_struct=Exchangeable(),
    )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # What does not converge is left out below, and says so as NaN.
        warnings.simplefilter("ignore")
        try:
            fitted = model.fit(maxiter=200)
            table = fitted.wald_test_terms(scalar=True).table
        except (ValueError, np.linalg.LinAlgError):
            return {}
    if not fitted.converged or not (np.abs(fitted.params) < _SEPARATED).all():
        return {}
    told = table.rename(columns={"df_constraint": "df", "pvalue": "p"}).astype(float)
    return dict(told.to_dict("index"))
