"""What a dialogue will be, before a word of it is written.

A plan fixes everything that can be counted: scenario, timing, who speaks on which
row, and which labels stand where. The writer then only finds words for it, so the
published counts hold by construction and not by luck.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Sec 3.1, 3.3, 3.4 and Appendix D.1.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from cradle_lib.errors import CorpusError
from cradle_lib.labels import BITS, crisis_type, temporal

Timing = Literal["early", "mid", "late"]
Item = TypeVar("Item")

TIMINGS: Final[tuple[Timing, ...]] = ("early", "mid", "late")
SCENARIOS: Final = ("S1", "S2", "S3", "S4", "S5", "S6", "S7")
ACUTE: Final = frozenset({"S4", "S5"})
VOICES: Final = ("terse", "rambling", "slang", "hedging", "formal")

# The paper's own mapping (its Table 8) is an image in our copy, so this is a plausible
# one. All types share S1, S2 and S6: no set of labels is ever without a scenario, and
# the paper's fallback for empty intersections is never needed.
PLAUSIBLE: Final[dict[str, frozenset[str]]] = {
    "SI_passive": frozenset({"S1", "S2", "S3", "S4", "S6", "S7"}),
    "SI_active": frozenset({"S1", "S2", "S3", "S4", "S5", "S6", "S7"}),
    "SH": frozenset({"S1", "S2", "S3", "S4", "S6", "S7"}),
    "DV": frozenset({"S1", "S2", "S4", "S5", "S6", "S7"}),
    "CA": frozenset({"S1", "S2", "S3", "S4", "S5", "S6", "S7"}),
    "SHA": frozenset({"S1", "S2", "S3", "S5", "S6", "S7"}),
    "RA": frozenset({"S1", "S2", "S3", "S4", "S5", "S6", "S7"}),
}


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """Something that happened to the user.

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
        """The event's part of a section name, such as ``SH.past``."""
        return f"{self.type}.{self.state}"


@dataclass(frozen=True, slots=True)
class Step:
    """One labelled utterance, before it has a place.

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
            return sum({BITS[f"alert_{event.state}"] for event in self.events})
        return sum(BITS[f"confirm_{event.type}_{event.state}"] for event in self.events)


@dataclass(frozen=True, slots=True)
class Case:
    """The labels of one dialogue, in order.

    Attributes:
        steps: Labelled utterances, first to last.
        quirk: ``listener`` or ``continuation`` if the label stands on such a row, as two
            labels of the release do; else empty.
    """

    steps: tuple[Step, ...] = ()
    quirk: Literal["", "listener", "continuation"] = ""

    @property
    def events(self) -> frozenset[Event]:
        """All events, hinted at or disclosed."""
        return frozenset(event for step in self.steps for event in step.events)

    @property
    def kind(self) -> str:
        """``both``, ``alert``, ``confirm`` or ``none``."""
        stages = {step.stage for step in self.steps}
        return "both" if len(stages) == 2 else next(iter(stages), "none")

    def scenarios(self) -> frozenset[str]:
        """Gives the scenarios in which these events are plausibly told.

        Nothing past is told in the two acute scenarios, S4 and S5 (Sec 3.1).
        """
        allowed = frozenset(SCENARIOS)
        for event in self.events:
            allowed &= PLAUSIBLE.get(event.type, allowed)
            if event.state == "past":
                allowed -= ACUTE
        return allowed


@dataclass(frozen=True, slots=True)
class Plan:
    """One dialogue, ready to be written.

    Attributes:
        split: ``train``, ``dev`` or ``test``.
        index: Position in the split.
        case: The labels.
        scenario: ``S1`` to ``S7``.
        timing: When the crisis is revealed.
        rows: One letter per row: ``U`` and ``L`` start an utterance, ``u`` and ``l``
            continue it.
        places: For each step of the case, the row that carries its labels.
        voice: How the user talks.
    """

    split: str
    index: int
    case: Case
    scenario: str
    timing: Timing
    rows: str
    places: tuple[int, ...]
    voice: str

    def masks(self) -> list[int]:
        """Gives the labels of every row."""
        masks = [0] * len(self.rows)
        for place, step in zip(self.places, self.case.steps, strict=True):
            masks[place] |= step.mask
        return masks


def apportion(weights: Sequence[float], total: int) -> list[int]:
    """Splits a total in proportion to weights, by largest remainder.

    Args:
        weights: Non-negative, with a positive sum.
        total: What to split.

    Returns:
        Whole numbers that add up to ``total``; ties go to the earlier weight.
    """
    whole = sum(weights)
    exact = [weight * total / whole for weight in weights]
    shares = [int(value) for value in exact]
    order = sorted(range(len(exact)), key=lambda i: (shares[i] - exact[i], i))
    for i in order[: total - sum(shares)]:
        shares[i] += 1
    return shares


def spread(choices: Iterable[tuple[Item, float]], total: int, rng: random.Random) -> list[Item]:
    """Makes a shuffled list in which each choice has its apportioned share."""
    pairs = list(choices)
    shares = apportion([weight for _, weight in pairs], total)
    items = [item for (item, _), share in zip(pairs, shares, strict=True) for _ in range(share)]
    return shuffled(items, rng)


def shuffled(items: Iterable[Item], rng: random.Random) -> list[Item]:
    """Shuffles into a new list, by the one draw that Python promises never to change."""
    return [item for _, _, item in sorted((rng.random(), i, item) for i, item in enumerate(items))]


def stretch(lengths: Sequence[int], total: int, step: int, low: int, high: int) -> list[int]:
    """Moves lengths by equal steps until they add up to a total.

    Args:
        lengths: Where to start from.
        total: The wanted sum; differs from the present one by a multiple of ``step``.
        step: Size of one move.
        low: No length falls below.
        high: No length rises above.

    Returns:
        New lengths, in the same order.

    Raises:
        CorpusError: If no such lengths exist.
    """
    found = list(lengths)
    missing = total - sum(found)
    move = step if missing > 0 else -step
    while missing:
        before = missing
        for i, length in enumerate(found):
            if missing and low <= length + move <= high:
                found[i] += move
                missing -= move
        if missing == before or missing % step:
            raise CorpusError(f"{len(found)} dialogues can't have {total} rows")
    return found


def assign_scenarios(
    cases: Sequence[Case], quotas: dict[str, int], rng: random.Random
) -> list[str]:
    """Gives every dialogue a plausible scenario such that all quotas are met.

    Dialogues with the fewest plausible scenarios choose first; each takes the scenario
    that is furthest from its quota.

    Args:
        cases: The dialogues' labels.
        quotas: How many dialogues each scenario gets; they add up to ``len(cases)``.
        rng: Breaks ties.

    Raises:
        CorpusError: If the quotas can't be met.
    """
    left = dict(quotas)
    found: list[str] = [""] * len(cases)
    for scenario in sorted(ACUTE):
        # What may be told in an acute scenario is scarce, so these are filled first,
        # with labelled and label-free dialogues in proportion.
        able = [i for i, case in enumerate(cases) if not found[i] and scenario in case.scenarios()]
        for i in shuffled(able, rng)[: left[scenario]]:
            found[i] = scenario
            left[scenario] -= 1
    rest = sorted(
        shuffled([i for i in range(len(cases)) if not found[i]], rng),
        key=lambda i: len(cases[i].scenarios() - ACUTE),
    )
    for i in rest:
        open_ = [s for s in SCENARIOS if left[s] and s in cases[i].scenarios()]
        if not open_:
            raise CorpusError(f"no scenario is left for dialogue {i} with {cases[i].events}")
        found[i] = max(open_, key=lambda s: left[s])
        left[found[i]] -= 1
    return found


def assign_timings(cases: Sequence[Case], rng: random.Random) -> list[Timing]:
    """Splits the dialogues into thirds, within each kind as evenly as it goes."""
    found: list[Timing] = ["early"] * len(cases)
    order = sorted(shuffled(range(len(cases)), rng), key=lambda i: cases[i].kind)
    for position, i in enumerate(order):
        found[i] = TIMINGS[position % len(TIMINGS)]
    return found
