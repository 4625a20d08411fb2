"""Which everyday topics fit a dialogue.

A pupil does not talk to a teacher about retirement, and nobody brings a wedding to the police:
``scenarios.yml`` lists the topics of a scenario. ``contradicting_topics.yml`` lists topics that
contradict a disclosed event.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

from cradle_extras.construction.plan import Plan
from cradle_extras.construction.scenarios import SCENARIOS
from cradle_extras.construction.writers.bank import Bank

_CONTRADICTING: Final[dict[str, list[str]]] = yaml.safe_load(
    Path(__file__).with_name("contradicting_topics.yml").read_text(encoding="utf-8")
)


def fitting_topics(bank: Bank, plan: Plan) -> list[str]:
    """Lists, sorted, the topics that fit a dialogue's scenario and contradict nothing it discloses.

    The bank's sections ``topic.NAME.user`` define the topics. If none of them fits, all do.
    """
    topics = [name.split(".")[1] for name in bank.named(r"topic\.[^.]+\.user")]
    barred = {name for event in plan.events for name in _CONTRADICTING.get(event.key, ())}
    allowed = (SCENARIOS[plan.scenario].topics or set(topics)) - barred
    return [name for name in topics if name in allowed] or topics
