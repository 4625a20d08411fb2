"""The seven scenarios in which a dialogue takes place, and which crisis types fit which.

``scenarios.yml`` defines them.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Sec 3.1, Table 1, and Appendix A.3, Table 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd
import yaml

from cradle_lib.labels import CRISIS_TYPES, crisis_type, temporal


@dataclass(frozen=True, slots=True)
class Scenario:
    """Where and with whom the user talks.

    Attributes:
        name: A few words.
        definition: Its description in the prompt of a writer.
        types: Crisis types that are plausibly told there.
        acute: Whether it is for immediate intervention.
        topics: Everyday topics that fit; empty if all do.
    """

    name: str
    definition: str
    types: frozenset[str]
    acute: bool = False
    topics: frozenset[str] = frozenset()


def _read_scenarios() -> dict[str, Scenario]:
    path = Path(__file__).with_name("scenarios.yml")
    fields = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {
        key: Scenario(
            one["name"],
            one["definition"],
            types=frozenset(CRISIS_TYPES) - set(one.get("without", ())),
            acute=one.get("acute", False),
            topics=frozenset(one.get("topics", ())),
        )
        for key, one in fields.items()
    }


SCENARIOS: Final[Mapping[str, Scenario]] = _read_scenarios()
#: Scenarios of immediate intervention: nothing past is told there.
ACUTE: Final = frozenset(name for name, scenario in SCENARIOS.items() if scenario.acute)


def fitting_scenarios(
    labels: Iterable[str], scenarios: Mapping[str, Scenario] = SCENARIOS
) -> frozenset[str]:
    """Finds the scenarios in which all of some confirms are plausibly told; no label fits all.

    Without an overlap they are all that fit at least one label, of which the paper takes the least
    frequent.
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
    return frozenset.intersection(*sets) or frozenset.union(*sets)


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
                "acute": scenario.acute,
                **{crisis: crisis in scenario.types for crisis in CRISIS_TYPES},
            }
            for key, scenario in SCENARIOS.items()
        ]
    )
