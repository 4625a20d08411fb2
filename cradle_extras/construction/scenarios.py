"""The seven scenarios of dialogues, and the crisis types that fit each.

``scenarios.yml`` defines them.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Sec 3.1, Table 1, and Appendix A.3, Table 8.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd
import yaml

from cradle_lib.labels import CRISIS_TYPES, crisis_type, temporal


@dataclass(frozen=True, slots=True)
class Scenario:
    """The setting of a dialogue: where and with whom the user talks.

    Attributes:
        name: A short name.
        definition: Its description in the prompt of a writer.
        without: Crisis types that do not fit.
        acute: Whether it is a service for immediate intervention.
    """

    name: str
    definition: str
    without: Collection[str] = ()
    acute: bool = False


_FILE: Final = Path(__file__).with_name("scenarios.yml")
SCENARIOS: Final = {
    key: Scenario(**fields)
    for key, fields in yaml.safe_load(_FILE.read_text(encoding="utf-8")).items()
}
#: Scenarios of immediate intervention, which past events do not fit.
ACUTE: Final = frozenset(name for name, scenario in SCENARIOS.items() if scenario.acute)


def fitting_scenarios(labels: Iterable[str]) -> frozenset[str]:
    """Finds the scenarios that fit all given confirm labels; without labels, all scenarios.

    If no scenario fits all labels, gives those that fit at least one. The paper then takes the
    least frequent of these.
    """
    sets = [
        frozenset(
            name
            for name, scenario in SCENARIOS.items()
            if crisis_type(label) not in scenario.without
            and not (temporal(label) == "past" and name in ACUTE)
        )
        for label in labels
    ]
    if not sets:
        return frozenset(SCENARIOS)
    return frozenset.intersection(*sets) or frozenset.union(*sets)


def scenario_frame() -> pd.DataFrame:
    """Gives the seven scenarios, this project's version of the paper's Tables 1 and 8.

    Returns:
        One row for each scenario: ``scenario``, ``name``, ``definition`` (str), ``acute`` (bool),
        and for each crisis type a column (bool) that says whether it fits.
    """
    rows = [
        {"scenario": key, "name": one.name, "definition": one.definition, "acute": one.acute}
        | {crisis: crisis not in one.without for crisis in CRISIS_TYPES}
        for key, one in SCENARIOS.items()
    ]
    return pd.DataFrame(rows)
