"""Plans dialogues before they are written.

A plan determines the scenario, the timing, the speaker and the labels of each row. The writer only
adds the text.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Sec 3.1, 3.3 and Appendix D.1, Figures 11 and 12.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from cradle_extras.construction.posts import Post
from cradle_extras.construction.scenarios import SCENARIOS, fitting_scenarios
from cradle_lib.labels import crisis_type, labels_of, mask_of, temporal, union

Timing = Literal["early", "mid", "late"]
Kind = Literal["annotated", "training"]

TIMINGS: Final[tuple[Timing, ...]] = ("early", "mid", "late")
KINDS: Final[tuple[Kind, ...]] = ("annotated", "training")
#: Minimum and maximum number of turns of each kind.
TURNS: Final[Mapping[Kind, tuple[int, int]]] = {"annotated": (10, 13), "training": (15, 15)}
#: User turns, counted from 1, on which a crisis may become explicit.
WINDOWS: Final[Mapping[Kind, Mapping[Timing, tuple[int, ...]]]] = {
    "annotated": {"early": (1, 3), "mid": (5,), "late": (7, 9)},
    "training": {"early": (3, 5, 7), "mid": (7, 9, 11), "late": (11, 13, 15)},
}
# Share of crises with an alert before the confirm.
_ANNOUNCED: Final = 0.7


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """A crisis of the user.

    Attributes:
        type: Crisis type, such as ``SH``; ``any`` for a hint that is never resolved.
        state: ``ongoing`` or ``past``.
    """

    type: str
    state: str

    @classmethod
    def of(cls, label: str) -> Event:
        """Gives the event that a confirm label names."""
        return cls(crisis_type(label) or "any", temporal(label))

    @property
    def key(self) -> str:
        """The event as text, such as ``SH.past``."""
        return f"{self.type}.{self.state}"


@dataclass(frozen=True, slots=True)
class Step:
    """One labelled utterance.

    Attributes:
        stage: ``alert`` or ``confirm``.
        events: The event hinted at, or the events disclosed.
    """

    stage: Literal["alert", "confirm"]
    events: tuple[Event, ...]

    @property
    def mask(self) -> int:
        """The labels of the step."""
        if self.stage == "alert":
            return mask_of(f"alert_{event.state}" for event in self.events)
        return mask_of(f"confirm_{event.type}_{event.state}" for event in self.events)


@dataclass(frozen=True, slots=True)
class Plan:
    """One dialogue, ready to be written.

    Attributes:
        dialogue: The dialogue's id.
        kind: ``annotated`` (for people to label) or ``training`` (tagged by its writer).
        scenario: ``S1`` to ``S7``.
        timing: When the crisis is revealed.
        rows: One letter per row: ``U`` for the user, ``L`` for the listener.
        steps: Labelled utterances, first to last.
        places: For each step, the row (from 0) with its labels.
        post: Id of the post that it is made from; empty for none.
    """

    dialogue: str
    kind: Kind
    scenario: str
    timing: Timing
    rows: str
    steps: tuple[Step, ...] = ()
    places: tuple[int, ...] = ()
    post: str = ""

    @property
    def events(self) -> frozenset[Event]:
        """All events, hinted at or disclosed."""
        return frozenset(event for step in self.steps for event in step.events)

    @property
    def mask(self) -> int:
        """The planned confirms."""
        return union(step.mask for step in self.steps if step.stage == "confirm")

    def masks(self) -> list[int]:
        """Gives the labels of every row."""
        masks = [0] * len(self.rows)
        for place, step in zip(self.places, self.steps, strict=True):
            masks[place] |= step.mask
        return masks


def plan_dialogues(posts: Iterable[Post], kind: Kind = "training", *, seed: int = 0) -> list[Plan]:
    """Plans one dialogue for each post.

    The scenario is the least frequent so far among those that fit all of the post's labels or, if
    there are none, among those that fit at least one; ties are broken at random. For the timing a
    number in [0, 1) is drawn for each post: the lowest third is early, the highest late.

    Args:
        posts: The posts.
        kind: ``annotated`` or ``training``.
        seed: Seed of all random choices.

    Returns:
        The plans, in the order of the posts.
    """
    items = list(posts)
    rng = random.Random(f"{seed} {kind} plan")
    ranks = np.argsort(np.argsort([rng.random() for _ in items]))
    used = dict.fromkeys(SCENARIOS, 0)
    plans = []
    for rank, post in zip(ranks, items, strict=True):
        found = fitting_scenarios(labels_of(post.mask))
        fewest = min(used[name] for name in found)
        rare = [name for name in SCENARIOS if name in found and used[name] == fewest]
        scenario = rare[int(rng.random() * len(rare))]
        used[scenario] += 1
        timing = TIMINGS[rank * len(TIMINGS) // len(items)]
        plans.append(_plan(post, kind, scenario, timing, rng))
    return plans


def _plan(post: Post, kind: Kind, scenario: str, timing: Timing, rng: random.Random) -> Plan:
    low, high = TURNS[kind]
    turns = low + int(rng.random() * (high - low + 1))
    window = WINDOWS[kind][timing]
    at = window[int(rng.random() * len(window))] - 1
    events = tuple(Event.of(label) for label in labels_of(post.mask))
    steps: list[Step] = []
    places: list[int] = []
    announced, row = rng.random() < _ANNOUNCED, int(rng.random() * (at // 2)) * 2
    if events:
        if announced and at:
            steps.append(Step("alert", events[:1]))
            places.append(row)
        steps.append(Step("confirm", events))
        places.append(at)
    return Plan(
        dialogue=post.id,
        kind=kind,
        scenario=scenario,
        timing=timing,
        rows="".join("UL"[turn % 2] for turn in range(turns)),
        steps=tuple(steps),
        places=tuple(places),
        post=post.id,
    )
