"""What annotation and scoring share: rates, matchings, sums over dialogues, intervals."""

from cradle_lib.statistics.bootstrap import Estimate, bootstrap
from cradle_lib.statistics.rates import ratio

__all__ = ["Estimate", "bootstrap", "ratio"]
