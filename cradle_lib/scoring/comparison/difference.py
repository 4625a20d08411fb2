"""Which runs may be compared, and what may be said of a difference between two of them.

References:
    Cohen, Statistical Power Analysis (1988), for the smallest
    difference that a test would usually find.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields
from statistics import NormalDist
from typing import Final

import numpy as np

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.core.signature import Signature, shared
from cradle_lib.statistics.rates import Floats

ALPHA: Final = 0.05
# Below this many occurrences a test says more about chance than about models.
ENOUGH: Final = 20
# With fewer dialogues on which two runs differ no p-value survives a correction.
DISCORDANT: Final = 10
POWER: Final = 0.8
# The standard deviation of equal numbers is 0 but for rounding.
_NO_SPREAD: Final = 1e-12


def require_comparable(
    names: Sequence[str], signatures: Sequence[Signature], *, about: Collection[str] = ()
) -> Signature:
    """Gives the signature that several runs share; refuses those not scored in the same way.

    ``about`` names parts that may differ because the comparison is about them, such as
    ``("history",)``.

    Raises:
        ScoringError: Naming the runs, the part that differs and both values; or if ``about``
            names no part of a signature.
    """
    known = [field.name for field in fields(Signature)]
    for part in about:
        if part not in known:
            raise ScoringError(
                f"{part!r} is no part of a signature. Choose from {', '.join(known)}."
            )
    for name, signature in zip(names[1:], signatures[1:], strict=True):
        differing = signatures[0].differences(signature, allowed=about)
        if differing:
            parts = "; ".join(
                f"{part} is {getattr(signatures[0], part)!r} for {names[0]} and "
                f"{getattr(signature, part)!r} for {name}"
                for part in differing
            )
            raise ScoringError(
                f"these runs can't be compared: {parts}. Score both in the same way, over "
                "the same dialogues (`cradle compare --common`)."
            )
    return shared(signatures, about=about)


def detectable(error: Floats) -> Floats:
    """Gives the smallest true difference that a two-sided test would usually find.

    It is (z(1 - alpha / 2) + z(power)) times the standard error of the difference: about 2.8 times.
    NaN where there is none, or no spread.
    """
    normal = NormalDist()
    found = (normal.inv_cdf(1 - ALPHA / 2) + normal.inv_cdf(POWER)) * error
    return np.where(found > _NO_SPREAD, found, np.nan)
