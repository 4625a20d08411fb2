"""Results leave for other people and other tools, and come back: bundles, and logs of Inspect."""

from cradle_lib.exchange.leaderboard import leaderboard
from cradle_lib.exchange.verify import verify_folder

__all__ = ["leaderboard", "verify_folder"]
