"""Statistics for annotation and scoring: rates, matching, sums over dialogues, intervals."""

from cradle_lib.statistics.bootstrap import Estimate, bootstrap
from cradle_lib.statistics.rates import ratio

__all__ = ["Estimate", "bootstrap", "ratio"]
