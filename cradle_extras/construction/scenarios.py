"""The seven scenarios in which a dialogue takes place, and which crisis types fit which.

The paper's Tables 1 and 8 are images in our copy, so the definitions and the mapping here are
this project's own. What the paper's prose does say is kept: seven scenarios, S4 and S5 for
immediate intervention, nothing past in these two, and an intersection for several labels.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Sec 3.1, Table 1, and Appendix A.3, Table 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import pandas as pd

from cradle_lib.errors import CorpusError
from cradle_lib.labels import CRISIS_TYPES, crisis_type, temporal


@dataclass(frozen=True, slots=True)
class Scenario:
    """Where and with whom the user talks.

    Attributes:
        name: A few words.
        definition: What a writer is told.
        types: Crisis types that are plausibly told there.
    """

    name: str
    definition: str
    types: frozenset[str]


_ALL: Final = frozenset(CRISIS_TYPES)

SCENARIOS: Final[Mapping[str, Scenario]] = {
    "S1": Scenario(
        "Friend or family",
        "The User talks in private with somebody close: a friend, a partner or a relative. The "
        "Listener knows them well, is warm and no professional, and wants to help.",
        _ALL,
    ),
    "S2": Scenario(
        "Therapy session",
        "The User talks with a therapist or counsellor in a session. The Listener is calm and "
        "asks open questions; the User may need several turns to find words.",
        _ALL,
    ),
    "S3": Scenario(
        "Teacher or school counsellor",
        "The User, a pupil or student, talks with a teacher, coach or counsellor. The talk often "
        "begins with school. The Listener is kind and keeps to the limits of the role.",
        _ALL - {"DV"},
    ),
    "S4": Scenario(
        "Doctor or nurse",
        "The User sees a doctor or nurse, at a practice or in an emergency department, about "
        "something that matters now. The Listener asks short questions about health and safety.",
        _ALL - {"SHA"},
    ),
    "S5": Scenario(
        "Authority or crisis service",
        "The User turns to an office that can act at once: a crisis line, the police, social "
        "services or a personnel office. The Listener is matter-of-fact, asks what is needed to "
        "help, and says what happens next.",
        _ALL - {"SI_passive", "SH"},
    ),
    "S6": Scenario(
        "Support forum",
        "The User writes in an online group for people who live through something similar. The "
        "Listener is another member: informal, from experience, without judgement.",
        _ALL,
    ),
    "S7": Scenario(
        "Casual comment thread",
        "The User writes in an ordinary thread or chat about something else, and the subject "
        "comes up in passing. The Listener is a stranger: brief, casual, and surprised at times.",
        _ALL,
    ),
}
#: Scenarios of immediate intervention: nothing past is told there.
ACUTE: Final = frozenset({"S4", "S5"})


def fitting_scenarios(
    labels: Iterable[str], scenarios: Mapping[str, Scenario] = SCENARIOS
) -> frozenset[str]:
    """Finds the scenarios in which all of some confirms are plausibly told; no label fits all.

    Without an overlap they are all that fit at least one label, of which the paper takes the least
    frequent. If there is none either, a :class:`.CorpusError` says so.
    """
    sets = [
        frozenset(
            name
            for name, scenario in scenarios.items()
            if crisis_type(label) in scenario.types
            and not (temporal(label) == "past" and name in ACUTE)
        )
        for label in labels
    ]
    if not sets:
        return frozenset(scenarios)
    if found := frozenset.intersection(*sets) or frozenset.union(*sets):
        return found
    raise CorpusError(
        f"no scenario fits {', '.join(labels)}",
        hint="Let a scenario hold one of these crisis types, or take the post out.",
    )


def scenario_frame() -> pd.DataFrame:
    """Gives the seven scenarios, the project's own Tables 1 and 8.

    Returns:
        One row for each scenario: ``scenario``, ``name``, ``definition`` (str), ``acute`` (bool),
        and for each crisis type a column (bool) that says whether it fits.
    """
    return pd.DataFrame(
        [
            {
                "scenario": key,
                "name": scenario.name,
                "definition": scenario.definition,
                "acute": key in ACUTE,
                **{crisis: crisis in scenario.types for crisis in CRISIS_TYPES},
            }
            for key, scenario in SCENARIOS.items()
        ]
    )
