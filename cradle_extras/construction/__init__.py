"""Construction: posts become plans, a writer words them, validators judge, a corpus results.

The phrase bank that ships is one writer, a language model another: both work on the same plans and
pass the same validators.
"""

from cradle_extras.construction.check import check_attempts, check_dialogues, contamination
from cradle_extras.construction.construct import construct, load_construction
from cradle_extras.construction.plan import plan_dialogues
from cradle_extras.construction.posts import load_posts
from cradle_extras.construction.repair import writing_prompts
from cradle_extras.construction.scenarios import scenario_frame

__all__ = [
    "check_attempts",
    "check_dialogues",
    "construct",
    "contamination",
    "load_construction",
    "load_posts",
    "plan_dialogues",
    "scenario_frame",
    "writing_prompts",
]
