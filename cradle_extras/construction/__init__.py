"""Construction: posts become plans, a writer words them, validators judge, a corpus results.

The phrase bank that ships is one writer, a language model another: both work on the same plans and
pass the same validators.
"""

from cradle_extras.construction.assemble import Construction
from cradle_extras.construction.check import check_attempts, check_dialogues, contamination
from cradle_extras.construction.construct import ATTEMPTS, construct, load_construction
from cradle_extras.construction.plan import Kind, Plan, plan_dialogues
from cradle_extras.construction.posts import Posts, load_posts
from cradle_extras.construction.repair import writing_prompts
from cradle_extras.construction.scenarios import scenario_frame
from cradle_extras.construction.writers.language_model import (
    PHRASE_BANK,
    form_grammar,
    writer_model,
)

__all__ = [
    "ATTEMPTS",
    "PHRASE_BANK",
    "Construction",
    "Kind",
    "Plan",
    "Posts",
    "check_attempts",
    "check_dialogues",
    "construct",
    "contamination",
    "form_grammar",
    "load_construction",
    "load_posts",
    "plan_dialogues",
    "scenario_frame",
    "writer_model",
    "writing_prompts",
]
