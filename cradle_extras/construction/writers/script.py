"""Chooses the purpose of each utterance of a planned dialogue, and the phrases for it.

A *move* names the sections of the phrase bank that fit an utterance, best first. The moves follow
the course of a conversation: greeting, topic, lead-up to a disclosure, a question that invites it,
the disclosure, support, follow-up, goodbye. The Listener always answers the last user turn.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from cradle_extras.construction.plan import Event, Plan, Step
from cradle_extras.construction.scenarios import SCENARIOS
from cradle_extras.construction.writers.bank import Bank
from cradle_lib.labels import CRISIS_TYPES

LABELLED: Final = r"(alert|confirm2?)\..+"
_HARM: Final = frozenset({"SI_passive", "SI_active", "SH"})
_RECOVERY: Final = frozenset({"any.past", "SH.past"})
_RECOVERED: Final = "recovery milestone"
_INDIRECT: Final = "indirect alert"
_ORDER: Final = tuple(CRISIS_TYPES)
_HARD_CASES: Final = {"DV.ongoing": "ongoing told as past", "SH.past": "surface complaint"}
_SEXUAL: Final = frozenset({"RA", "SHA", "CA"})
_CONTRADICTING: Final[dict[str, list[str]]] = yaml.safe_load(
    Path(__file__).with_name("contradicting_topics.yml").read_text(encoding="utf-8")
)


@dataclass(frozen=True, slots=True)
class Mix:
    """Parameters for the difficulty of a split.

    Attributes:
        familiar: Share of the test split's labelled turns with a phrase that train and dev also
            use, though never the same sentence. Lower is harder.
        hard: Share of disclosures taken from the ``hard`` sections: understated, told as
            past though ongoing, or hidden in another complaint.
        vague: Share of alerts that do not hint at a particular crisis type.
        distract: Share of free user turns with distractors, which sound like a crisis: idioms,
            jokes, song lines, other people, hypotheticals, negations, venting.
        alike: Share of the distractors that name a crisis explicitly: other people,
            hypotheticals, negations.
        after: Scales the probability that a user turn returns to a disclosed event.
        hint: Share of these turns that would be an alert before the disclosure.
        retell: Share of these turns that would be the confirm before the disclosure. Only the
            history distinguishes them from labelled turns.
    """

    familiar: float
    hard: float
    vague: float
    distract: float
    alike: float
    after: float
    hint: float
    retell: float


#: Mostly plain disclosures, without distractors, hints or repeated disclosures.
PLAIN: Final = Mix(
    familiar=1.0, hard=0.15, vague=0.1, distract=0.0, alike=0.0, after=0.45, hint=0.0, retell=0.0
)


@dataclass(frozen=True, slots=True)
class Move:
    """The purpose of a row and the sections for its text.

    Attributes:
        kind: The purpose, such as ``confirm``, ``topic``, ``reply`` or ``item`` (of a list).
        parts: For each part of the text, sections to draw it from, best first.
        case: Name of its hard case, if any.
    """

    kind: str
    parts: tuple[tuple[str, ...], ...]
    case: str = ""


def fitting_topics(bank: Bank, plan: Plan) -> list[str]:
    """Lists the topics that fit a dialogue's scenario and do not contradict its events, sorted.

    The bank's sections ``topic.NAME.user`` define the topics. If none fits, all are given.
    """
    topics = [name.split(".")[1] for name in bank.named(r"topic\.[^.]+\.user")]
    barred = {name for event in plan.events for name in _CONTRADICTING.get(event.key, ())}
    allowed = set(SCENARIOS[plan.scenario].topics or topics) - barred
    return [name for name in topics if name in allowed] or topics


class Script:
    """Converts a plan to moves, with a fitting topic; all choices are random."""

    def __init__(self, bank: Bank, plan: Plan, mix: Mix, rng: random.Random) -> None:
        self._bank, self._plan, self._mix, self._rng = bank, plan, mix, rng
        self._steps = dict(zip(plan.places, plan.steps, strict=True))
        self._user_rows = [row for row, who in enumerate(plan.rows) if who == "U"]
        self._topic = self._one(fitting_topics(bank, plan))
        self._types = [event.type for event in sorted(plan.events) if event.type != "any"]
        self._shade = self._one(self._types or _ORDER)
        self._disclosed: list[Event] = []
        self._opened = False

    def moves(self) -> list[Move]:
        """Gives the move of every row; rows that continue an utterance are items of a list."""
        found: list[Move] = []
        last: Move | None = None
        for row, who in enumerate(self._plan.rows):
            bullets = "bullets" if who in "Uu" else "listener.bullets"
            if who in "ul" and row in self._steps:
                found.append(Move("item", ((f"confirm.{self._steps[row].events[0].key}",),)))
                continue
            if who in "ul":
                found.append(self._move("item", f"{bullets}.{{scenario}}"))
                continue
            last = self._user(row, last) if who == "U" else self._listener(row, last)
            if self._plan.rows[row + 1 : row + 2] in ("u", "l") and row not in self._steps:
                last = self._move("list", f"{bullets}.lead.{{scenario}}")
                if self._plan.odd_row == "u":
                    self._disclosed.extend(self._plan.events)
            found.append(last)
        return found

    def _user(self, row: int, last: Move | None) -> Move:
        step = self._steps.get(row)
        if step is not None:
            return self._labelled(step)
        if self._plan.odd_row == "L" and row + 1 in self._steps:
            return Move("alert", (("alert.any.ongoing",),), _INDIRECT)
        if row == self._user_rows[0]:
            if self._rng.random() < 0.6:
                return self._move("open", "open.{scenario}")
            return self._topical()
        if row == self._user_rows[-1] and row > max(self._steps, default=0):
            return self._move("close", "close.{scenario}")
        coming = self._coming(row)
        following = self._user_rows[self._user_rows.index(row) + 1]
        if coming and following in self._steps and self._rng.random() < 0.65:
            return self._move("before", f"before.{coming.type}", "topic.{topic}.user")
        if self._disclosed:
            fresh = last is not None and last.kind == "support"
            if self._rng.random() < self._mix.after * (1.4 if fresh else 0.8):
                return self._after(self._disclosed[-1].key)
        return self._free()

    def _after(self, key: str) -> Move:
        chance = self._rng.random()
        if chance < self._mix.hint:
            return self._move("after", f"alert.{key}", f"after.{key}")
        if chance < self._mix.hint + self._mix.retell:
            return self._move("after", f"confirm.{key}", f"after.{key}")
        return self._move("after", f"after.{key}", "user.{scenario}")

    def _labelled(self, step: Step) -> Move:
        if step.stage == "alert":
            event = step.events[0]
            milestone = f"alert.any.{event.state}.milestone"
            if event.key in _RECOVERY and self._rng.random() < 0.4:
                return Move("alert", ((milestone, f"alert.any.{event.state}"),), _RECOVERED)
            chain = (f"alert.{event.key}", f"alert.any.{event.state}")
            if self._rng.random() < self._mix.vague:
                chain = chain[::-1]
            return Move("alert", (chain,), "unresolved alert" if event.type == "any" else _INDIRECT)
        self._disclosed.extend(step.events)
        both = "_".join(sorted((event.type for event in step.events), key=_ORDER.index))
        joint = f"confirm2.{both}.{step.events[0].state}"
        if joint in self._bank.sections and len({event.state for event in step.events}) == 1:
            return Move("confirm", ((joint,),))
        parts, case = [], ""
        for event in step.events:
            plain, hard = f"confirm.{event.key}", f"confirm.{event.key}.hard"
            if hard in self._bank.sections and self._rng.random() < self._mix.hard:
                parts.append((hard, plain))
                case = case or _HARD_CASES.get(event.key, "understated")
            else:
                parts.append((plain, hard))
        return Move("confirm", tuple(parts), case)

    def _free(self) -> Move:
        chance = self._rng.random()
        if chance < self._mix.distract:
            return self._distract()
        chance = self._rng.random()
        if not self._types and chance < 0.12:
            return self._move("before", f"before.{self._shade}", "user.{scenario}")
        if chance < (0.5 if self._disclosed else 0.25):
            return self._move("chat", "user.{scenario}", "topic.{topic}.user")
        return self._topical()

    def _topical(self) -> Move:
        if self._opened:
            return self._move("topic", "topic.{topic}.user", "user.{scenario}")
        self._opened = True
        return self._move("topic", "topic.{topic}.open", "topic.{topic}.user")

    def _distract(self) -> Move:
        other = [t for t in CRISIS_TYPES if t not in self._types]
        # A dialogue does not deny a crisis type that it discloses, or a similar one.
        near = set(self._types).union(*(g for g in (_HARM, _SEXUAL) if g & set(self._types)))
        denied = [t for t in CRISIS_TYPES if t not in near]
        if self._rng.random() < self._mix.alike:
            kinds = {
                kind: f"{kind}.{self._one(other)}" for kind in ("third_person", "hypothetical")
            }
            if not self._plan.hint_only:
                kinds["negation"] = f"negation.{self._one(denied)}"
        else:
            kinds = {kind: kind for kind in ("idiom", "joke", "lyric", "venting")}
        present = [kind for kind in kinds if f"distract.{kinds[kind]}" in self._bank.sections]
        if not present:
            return self._topical()
        kind = self._one(present)
        sections = (f"distract.{kinds[kind]}", "distract.venting")
        return Move("distract", (sections,), kind.replace("_", " "))

    def _listener(self, row: int, last: Move | None) -> Move:
        coming = self._coming(row)
        expects = row + 1 in self._steps and self._plan.rows[row] == "L"
        if last is None:
            return self._move("greet", "greet.{scenario}")
        if last.kind == "close":
            return self._move("bye", "bye.{scenario}")
        fresh = last.kind == "confirm" or (last.kind == "list" and self._disclosed)
        if fresh or (last.kind == "after" and self._rng.random() < 0.45):
            return self._move(
                "support", f"support.{self._disclosed[-1].key}", "listener.{scenario}"
            )
        if coming and (last.kind == "alert" or (expects and self._rng.random() < 0.8)):
            return self._move("ask", f"ask.{coming.type}", "question.{scenario}")
        if last.kind == "distract":
            kind = last.case.replace(" ", "_")
            return self._move("reply", f"reply.{kind}", "reply.distract", "listener.{scenario}")
        if last.kind == "topic" and self._rng.random() < 0.75:
            return self._move("reply", "topic.{topic}.listener", "listener.{scenario}")
        asks = {"open": 0.7, "alert": 0.5, "before": 0.4, "chat": 0.35}.get(last.kind, 0.3)
        if self._rng.random() < asks:
            return self._move("question", "question.{scenario}", "listener.{scenario}")
        return self._move("reply", "listener.{scenario}", "question.{scenario}")

    def _coming(self, row: int) -> Event | None:
        """Gives the next event that is disclosed after a row, if any."""
        steps = (self._steps[place] for place in sorted(self._steps) if place > row)
        return next((step.events[0] for step in steps if step.stage == "confirm"), None)

    def _move(self, kind: str, *sections: str) -> Move:
        names = {"scenario": self._plan.scenario, "topic": self._topic}
        return Move(kind, (tuple(section.format(**names) for section in sections),))

    def _one(self, items: Sequence[str]) -> str:
        return items[int(self._rng.random() * len(items))]
