"""Which everyday topics fit a dialogue.

A pupil does not talk to a teacher about retirement, and nobody brings a wedding to the
police. Topics that the bank lacks are left out; where no list is given, all topics fit.
"""

from __future__ import annotations

from typing import Final

from cradle_extras.construction.plan import Plan
from cradle_extras.construction.writers.bank import Bank

BY_SCENARIO: Final[dict[str, frozenset[str]]] = {
    "S3": frozenset(
        {
            "creative_block",
            "driving_test",
            "exam",
            "friendship",
            "grief",
            "illness_mild",
            "loneliness",
            "moving",
            "parent_conflict_mild",
            "perfectionism",
            "pet",
            "sibling",
            "sleep",
            "social_media",
            "sport_injury",
            "teammate",
            "university",
            "volunteering",
        }
    ),
    "S4": frozenset(
        {
            "caring",
            "commute",
            "diet_free",
            "exam",
            "grief",
            "illness_mild",
            "job",
            "loneliness",
            "money",
            "moving",
            "new_baby",
            "perfectionism",
            "retirement",
            "sleep",
            "sport_injury",
            "university",
        }
    ),
    "S5": frozenset(
        {
            "caring",
            "commute",
            "immigration_paperwork",
            "job",
            "loneliness",
            "money",
            "moving",
            "neighbour",
            "rent",
            "sleep",
            "social_media",
            "university",
            "volunteering",
        }
    ),
}
COUPLE: Final = frozenset({"breakup", "wedding"})
ADULT: Final = COUPLE | frozenset(
    {
        "caring",
        "commute",
        "driving_test",
        "immigration_paperwork",
        "job",
        "money",
        "moving",
        "neighbour",
        "new_baby",
        "rent",
        "retirement",
        "university",
        "volunteering",
    }
)


def fitting(bank: Bank, plan: Plan) -> list[str]:
    """Lists, sorted, the topics that fit a dialogue's scenario and contradict nothing it discloses.

    The bank's sections ``topic.NAME.user`` say which exist; if none of them fits, all do.
    """
    every = [name.split(".")[1] for name in bank.named(r"topic\.[^.]+\.user")]
    keys = {event.key for event in plan.events}
    barred = frozenset[str]()
    if {"DV.ongoing", "RA.ongoing"} & keys:
        barred |= COUPLE
    if "CA.ongoing" in keys:
        barred |= ADULT
    allowed = BY_SCENARIO.get(plan.scenario, frozenset(every)) - barred
    return [name for name in every if name in allowed] or every
