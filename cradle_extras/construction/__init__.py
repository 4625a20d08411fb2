"""Constructs dialogues: plans made from posts, a writer, validators, repairs, and a corpus.

The writer is a language model.
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
