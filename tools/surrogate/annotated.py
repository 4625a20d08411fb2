"""Plans the test split. The tables below are a solution of all published counts; nothing is fitted.

The 600 dialogues have 713 labels. The arithmetic behind the tables:

- User rows have 172 + 64 alerts and 475 confirms, on 703 rows, so eight rows have two
  labels. Two more labels are on other rows: here an ``alert_ongoing`` on a Listener row
  and a ``confirm_SH_ongoing`` on a continuation row. Total: 237 alerts, 476 confirms.
- Each confirm label occurs once per dialogue, so the 417 dialogues with a confirm
  have 476 = 362 x 1 + 51 x 2 + 4 x 3 of them: mean 0.793, sd 0.612.
- 226 dialogues have an alert. Four have both alert labels (230 unique: mean 0.383, sd
  0.500); seven have the same alert label twice, for two events (237 in total).
- Unique labels per dialogue: 706 / 600 = 1.177. Their sd is 0.89 if the products of
  alerts and confirms per dialogue sum to 231 to 235; these tables give 233.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Final, Literal

from cradle_extras.construction.plan import VOICES, Event, Plan, Step, Timing
from cradle_lib.errors import CorpusError
from tools.surrogate.quotas import (
    SCENARIO_COUNTS,
    Case,
    apportion,
    assign_scenarios,
    assign_timings,
    shuffled,
    spread,
    stretch,
)

ROWS: Final = 8975
USER_ROWS: Final = 4527
CONTINUATION_BLOCKS: Final = {2: 20, 3: 20, 4: 20}

# Confirms on user rows (label_counts.csv), plus the one on a continuation row.
CONFIRMS: Final[dict[Event, int]] = {
    Event("CA", "ongoing"): 8,
    Event("CA", "past"): 27,
    Event("DV", "ongoing"): 25,
    Event("DV", "past"): 31,
    Event("RA", "ongoing"): 7,
    Event("RA", "past"): 59,
    Event("SH", "ongoing"): 77 + 1,
    Event("SH", "past"): 27,
    Event("SHA", "ongoing"): 23,
    Event("SHA", "past"): 40,
    Event("SI_active", "ongoing"): 58,
    Event("SI_active", "past"): 11,
    Event("SI_passive", "ongoing"): 78,
    Event("SI_passive", "past"): 4,
}
ALERTS: Final = {"ongoing": 172 + 1, "past": 64}
NEITHER: Final = 160
ALERT_ONLY: Final = {"ongoing": 13, "past": 10}

# How the alerts of a dialogue with several events relate to them.
Alerts = Literal["none", "first", "each"]

# Events; number of dialogues; which events have an alert; whether one turn discloses all events.
SEVERAL: Final[tuple[tuple[str, int, Alerts, bool], ...]] = (
    # Both alert labels in one dialogue: four.
    ("SI_active.past SI_passive.ongoing", 2, "each", False),
    ("RA.past SI_passive.ongoing", 2, "each", False),
    # The same alert label twice, for two events: seven.
    ("SH.ongoing SI_passive.ongoing", 3, "each", False),
    ("SH.ongoing SI_active.ongoing", 2, "each", False),
    ("SHA.past RA.past", 1, "each", False),
    ("CA.past DV.past", 1, "each", False),
    # One alert: nine (six ongoing, three past), two of them disclosed in one turn.
    ("SI_passive.ongoing SH.ongoing", 3, "first", False),
    ("SI_passive.ongoing SH.ongoing", 1, "first", True),
    ("DV.ongoing SI_passive.ongoing", 2, "first", False),
    ("CA.past RA.past", 1, "first", True),
    ("SH.past SI_passive.ongoing", 2, "first", False),
    # No alert: 31, six of them disclosed in one turn.
    ("CA.past RA.past", 3, "none", True),
    ("CA.past RA.past", 1, "none", False),
    ("CA.ongoing RA.ongoing", 1, "none", True),
    ("SI_passive.ongoing SH.ongoing", 1, "none", True),
    ("DV.past RA.past", 1, "none", True),
    ("SI_passive.ongoing SH.ongoing", 5, "none", False),
    ("SI_active.ongoing SH.ongoing", 3, "none", False),
    ("SI_passive.ongoing SI_active.past", 3, "none", False),
    ("RA.past SI_passive.ongoing", 2, "none", False),
    ("SH.past SI_passive.ongoing", 2, "none", False),
    ("SH.past SI_passive.past", 1, "none", False),
    ("CA.past SH.ongoing", 3, "none", False),
    ("DV.ongoing SI_passive.ongoing", 1, "none", False),
    ("SHA.ongoing SHA.past", 2, "none", False),
    ("RA.past SHA.past", 1, "none", False),
    ("DV.past SI_active.ongoing", 1, "none", False),
    # Three confirms: four, one of them with an alert.
    ("SI_passive.ongoing SH.ongoing CA.past", 1, "first", False),
    ("SI_active.past SI_active.ongoing SH.ongoing", 1, "none", False),
    ("CA.past RA.past SI_passive.ongoing", 1, "none", False),
    ("SH.past SI_passive.ongoing RA.past", 1, "none", False),
)


def plan_annotated(rng: random.Random) -> list[Plan]:
    """Plans the 600 dialogues of the test split.

    Raises:
        CorpusError: If the tables above contradict each other.
    """
    cases = shuffled(_cases(), rng)
    scenarios = assign_scenarios(cases, SCENARIO_COUNTS, rng)
    timings = assign_timings(cases, rng)
    voices = spread([(voice, 1.0) for voice in VOICES], len(cases), rng)
    shapes = _shapes(cases, timings, rng)
    plans = []
    for i, case in enumerate(cases):
        rows, places = _place(case, timings[i], *shapes[i], rng)
        plans.append(
            Plan(str(i), "annotated", scenarios[i], timings[i], rows, case.steps, places, voices[i])
        )
    return plans


def _cases() -> list[Case]:
    cases = [Case() for _ in range(NEITHER)]
    for state, count in ALERT_ONLY.items():
        cases += [Case((Step("alert", (Event("any", state),)),)) for _ in range(count)]
    cases[-1 - ALERT_ONLY["past"]] = Case(
        (Step("alert", (Event("any", "ongoing"),)),), quirk="listener"
    )
    left = Counter(CONFIRMS)
    for names, count, alerts, together in SEVERAL:
        events = tuple(Event(*name.split(".")) for name in names.split())
        left.subtract(dict.fromkeys(events, count))
        cases += [Case(_steps(events, alerts, together)) for _ in range(count)]
    cases += _singles(left, Counter(_alert_states(cases)))
    return cases


def _steps(events: tuple[Event, ...], alerts: Alerts, together: bool) -> tuple[Step, ...]:
    if together:
        hint = (Step("alert", events[:1]),) if alerts != "none" else ()
        return (*hint, Step("confirm", events))
    steps: list[Step] = []
    for number, event in enumerate(events):
        if alerts == "each" or (alerts == "first" and number == 0):
            steps.append(Step("alert", (event,)))
        steps.append(Step("confirm", (event,)))
    return tuple(steps)


def _alert_states(cases: list[Case]) -> list[str]:
    return [s.events[0].state for case in cases for s in case.steps if s.stage == "alert"]


def _singles(left: Counter[Event], used: Counter[str]) -> list[Case]:
    cases: list[Case] = []
    for state, total in ALERTS.items():
        events = sorted(event for event in left if event.state == state and left[event])
        announced = apportion([left[event] for event in events], total - used[state])
        for event, hinted in zip(events, announced, strict=True):
            if hinted > left[event]:
                raise CorpusError(f"{hinted} alerts announce {left[event]} confirms of {event.key}")
            plain = Case((Step("confirm", (event,)),))
            cases += [Case((Step("alert", (event,)), *plain.steps)) for _ in range(hinted)]
            cases += [plain for _ in range(left[event] - hinted)]
    # The confirm on a continuation row: a list item that discloses, in a dialogue without an alert.
    in_list = cases.index(Case((Step("confirm", (Event("SH", "ongoing"),)),)))
    cases[in_list] = Case(cases[in_list].steps, quirk="continuation")
    return cases


def _shapes(cases: list[Case], timings: list[Timing], rng: random.Random) -> list[tuple[str, int]]:
    """Assigns each dialogue its utterances (``ULUL…``) and the size of its list, 0 for none.

    With C continuation rows, x dialogues that start and end with the user, and y that
    start and end with the Listener, there are (8975 - C + x - y) / 2 user rows.
    """
    rows = sum(size * count for size, count in CONTINUATION_BLOCKS.items())
    surplus = 2 * USER_ROWS - (ROWS - rows)
    listener_first = {"LL": 41, "LU": 49}
    user_first = {"UU": surplus + listener_first["LL"]}
    user_first["UL"] = len(cases) - sum(listener_first.values()) - user_first["UU"]

    # A Listener-first dialogue has only one user turn among turns 1 to 3, so an early confirm
    # has no room for an alert before it. Dialogues with quirks keep the usual shape.
    able = [
        i
        for i, case in enumerate(cases)
        if not case.quirk
        and len(case.steps) <= 2
        and (timings[i] != "early" or case.kind != "both")
    ]
    ends = dict.fromkeys(range(len(cases)), "")
    chosen = shuffled(able, rng)[: sum(listener_first.values())]
    ends.update(zip(chosen, spread(listener_first.items(), len(chosen), rng), strict=True))
    others = [i for i in ends if not ends[i]]
    ends.update(zip(others, spread(user_first.items(), len(others), rng), strict=True))

    odd = [i for i in ends if ends[i] in ("UU", "LL")]
    even = [i for i in ends if ends[i] in ("UL", "LU")]
    lengths = dict(
        zip(
            odd,
            spread(((11, 6), (13, 27), (15, 40), (17, 20), (19, 7)), len(odd), rng),
            strict=True,
        )
    )
    lengths.update(
        zip(even, spread(((12, 15), (14, 40), (16, 33), (18, 12)), len(even), rng), strict=True)
    )
    order = shuffled(lengths, rng)
    exact = stretch([lengths[i] for i in order], ROWS - rows, step=2, low=11, high=19)
    lengths = dict(zip(order, exact, strict=True))

    quirky = [i for i, case in enumerate(cases) if case.quirk == "continuation"]
    calm = [i for i, case in enumerate(cases) if len(case.steps) <= 2 and lengths[i] <= 16]
    listed = (quirky + [i for i in shuffled(calm, rng) if i not in quirky])[
        : sum(CONTINUATION_BLOCKS.values())
    ]
    sizes = dict(zip(listed, spread(CONTINUATION_BLOCKS.items(), len(listed), rng), strict=True))
    return [
        ("".join("UL"[(t + (ends[i][0] == "L")) % 2] for t in range(lengths[i])), sizes.get(i, 0))
        for i in range(len(cases))
    ]


def _place(
    case: Case, timing: Timing, utterances: str, listed: int, rng: random.Random
) -> tuple[str, tuple[int, ...]]:
    """Selects rows for the labels and the list. Turns count from 1, rows from 0."""
    user = [row for row, who in enumerate(utterances) if who == "U"]
    low, high = {"early": (1, 3), "mid": (4, 6), "late": (7, 11)}[timing]
    stages = [step.stage for step in case.steps]
    main = stages.index("confirm") if "confirm" in stages else 0
    if not case.steps:
        return insert_list(utterances, listed, (), rng)
    if case.quirk == "listener":
        listening = [row for row, who in enumerate(utterances) if who == "L"]
        row = next(row for row in listening if low <= row + 1 <= high)
        return insert_list(utterances, listed, (row,), rng)

    after = len(case.steps) - main - 1
    window = [
        at
        for at, row in enumerate(user)
        if low <= row + 1 <= high and at >= main and at + after < len(user)
    ]
    if not window:
        raise CorpusError(f"no turn for {stages} with timing {timing} in {utterances}")
    roomy = [at for at in window if at + after < len(user) - 1] or window
    at = roomy[int(rng.random() * len(roomy))]
    if case.quirk == "continuation":
        rows = utterances[: user[at] + 1] + "u" * listed + utterances[user[at] + 1 :]
        return rows, (user[at] + listed - 1,)
    before = sorted(shuffled(range(at), rng)[:main])
    later = list(range(at + 1, len(user) - 1))
    if len(later) < after:
        later = list(range(at + 1, len(user)))
    # The remaining labels follow within the next few turns.
    follow = sorted(shuffled(later[: after + 1], rng)[:after])
    places = tuple(user[k] for k in (*before, at, *follow))
    return insert_list(utterances, listed, places, rng)


def insert_list(
    utterances: str, size: int, places: tuple[int, ...], rng: random.Random
) -> tuple[str, tuple[int, ...]]:
    """Adds continuation rows after all labels, so that no label moves."""
    if not size:
        return utterances, places
    first = max(places, default=1) + 1
    able = list(range(first, len(utterances) - 1)) or [len(utterances) - 2]
    row = able[int(rng.random() * len(able))]
    return utterances[: row + 1] + utterances[row].lower() * size + utterances[row + 1 :], places
