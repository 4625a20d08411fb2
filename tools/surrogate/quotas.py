"""Distributes labels, scenarios, timings and lengths so that published counts are met exactly."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from cradle_extras.construction.plan import TIMINGS, Event, Step, Timing
from cradle_extras.construction.scenarios import ACUTE, SCENARIOS, fitting_scenarios
from cradle_lib.errors import CorpusError

Item = TypeVar("Item")
#: Dialogues of the test split in each scenario (Sec 3.1).
SCENARIO_COUNTS: Final = dict(zip(SCENARIOS, (96, 97, 91, 67, 56, 97, 96), strict=True))


@dataclass(frozen=True, slots=True)
class Case:
    """The labels of one dialogue, in order.

    Attributes:
        steps: Labelled utterances, first to last.
        quirk: ``listener`` or ``continuation`` if the label is on such a row, as for two
            labels of the release; else empty.
    """

    steps: tuple[Step, ...] = ()
    quirk: Literal["", "listener", "continuation"] = ""

    @property
    def events(self) -> frozenset[Event]:
        """All events, of alerts and confirms."""
        return frozenset(event for step in self.steps for event in step.events)

    @property
    def kind(self) -> str:
        """``both``, ``alert``, ``confirm`` or ``none``."""
        stages = {step.stage for step in self.steps}
        return "both" if len(stages) == 2 else next(iter(stages), "none")

    def scenarios(self) -> frozenset[str]:
        """Returns the scenarios in which a user would plausibly disclose these events."""
        known = [f"confirm_{e.type}_{e.state}" for e in self.events if e.type != "any"]
        fits = fitting_scenarios(known)
        # An alert without a confirm fits every scenario; a past event fits no acute one.
        return fits - ACUTE if any(event.state == "past" for event in self.events) else fits


def apportion(weights: Sequence[float], total: int) -> list[int]:
    """Splits a total in proportion to weights, by largest remainder.

    Args:
        weights: Non-negative, with a positive sum.
        total: The number to split.

    Returns:
        Whole numbers that add up to ``total``; ties go to the earlier weight.
    """
    weight_sum = sum(weights)
    exact = [weight * total / weight_sum for weight in weights]
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
    """Shuffles into a new list with ``random()`` only, whose values Python promises to keep."""
    return [item for _, _, item in sorted((rng.random(), i, item) for i, item in enumerate(items))]


def stretch(lengths: Sequence[int], total: int, step: int, low: int, high: int) -> list[int]:
    """Moves lengths by equal steps until they add up to a total.

    Args:
        lengths: Initial lengths.
        total: Target sum; differs from the present one by a multiple of ``step``.
        step: Size of one move.
        low: Minimum length.
        high: Maximum length.

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
    """Assigns every dialogue a plausible scenario such that all quotas are met.

    After the acute scenarios, dialogues with the fewest plausible scenarios come first. Each
    gets the scenario that is furthest from its quota.

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
        # Few dialogues fit an acute scenario, so these are filled first, with labelled and
        # unlabelled dialogues in proportion.
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
    """Assigns each timing to a third of the dialogues, as evenly as possible within each kind."""
    found: list[Timing] = ["early"] * len(cases)
    order = sorted(shuffled(range(len(cases)), rng), key=lambda i: cases[i].kind)
    for position, i in enumerate(order):
        found[i] = TIMINGS[position % len(TIMINGS)]
    return found
