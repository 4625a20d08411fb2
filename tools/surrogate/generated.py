"""Plans the train and dev splits.

The plans follow the tag rules of the paper's training prompt (Figures 11 and 12): turns
alternate and the user starts; only user turns have labels; all confirms of a dialogue are
on one turn, in the window of the dialogue's timing; at most one alert, before that turn.
The shares are from Appendix D.1.2.
"""

from __future__ import annotations

import random
from typing import Final

from cradle_extras.construction.plan import VOICES, WINDOWS, Event, Plan, Step, Timing
from tools.surrogate.annotated import CONFIRMS
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

SIZES: Final = {"train": (3058, 48557), "dev": (420, 6679)}
NO_LABEL: Final = 0.285
BOTH: Final = 0.50
ALERT_ONLY: Final = 0.02
UNIQUE_LABELS: Final = 1.295
ALERT_ONGOING: Final = 0.30
LENGTHS: Final = ((15, 60), (16, 13), (17, 14), (18, 5), (19, 5), (20, 2), (21, 1))

# Weights of the first, second and third turn of a window.
EARLIEST: Final[dict[Timing, tuple[int, ...]]] = {
    "early": (5, 3, 2),
    "mid": (5, 3, 2),
    "late": (6, 3, 1),
}

# Sets of several confirms, and the weight of each.
SEVERAL: Final = (
    ("SI_passive.ongoing SH.ongoing", 30),
    ("SI_active.ongoing SH.ongoing", 14),
    ("SI_passive.ongoing SI_active.past", 8),
    ("CA.past RA.past", 12),
    ("CA.ongoing RA.ongoing", 3),
    ("DV.past RA.past", 6),
    ("DV.ongoing SI_passive.ongoing", 8),
    ("SH.past SI_passive.ongoing", 8),
    ("RA.past SI_passive.ongoing", 8),
    ("CA.past SH.ongoing", 8),
    ("SHA.past RA.past", 4),
    ("DV.ongoing RA.ongoing", 4),
    ("SHA.ongoing SI_passive.ongoing", 4),
    ("SI_passive.ongoing SH.ongoing CA.past", 2),
)


def plan_generated(split: str, rng: random.Random) -> list[Plan]:
    """Plans the dialogues of ``train`` or ``dev``."""
    dialogues, rows = SIZES[split]
    cases = shuffled(_cases(dialogues, rng), rng)
    shares = apportion(list(SCENARIO_COUNTS.values()), dialogues)
    scenarios = assign_scenarios(cases, dict(zip(SCENARIO_COUNTS, shares, strict=True)), rng)
    timings = assign_timings(cases, rng)
    voices = spread([(voice, 1.0) for voice in VOICES], dialogues, rng)
    lengths = stretch(spread(LENGTHS, dialogues, rng), rows, step=1, low=15, high=21)
    turns = {
        timing: iter(spread(zip(window, EARLIEST[timing], strict=True), timings.count(timing), rng))
        for timing, window in WINDOWS["training"].items()
    }
    plans = []
    for i, case in enumerate(cases):
        main = next(turns[timings[i]]) - 1
        hinted = range(0, main, 2)
        places = {
            "none": (),
            "alert": (main,),
            "confirm": (main,),
            "both": (hinted[int(rng.random() * len(hinted))], main),
        }[case.kind]
        shape = "".join("UL"[t % 2] for t in range(lengths[i]))
        plans.append(
            Plan(str(i), "training", scenarios[i], timings[i], shape, case.steps, places, voices[i])
        )
    return plans


def _cases(dialogues: int, rng: random.Random) -> list[Case]:
    none, both, hint_only = (round(share * dialogues) for share in (NO_LABEL, BOTH, ALERT_ONLY))
    confirm_only = dialogues - none - both - hint_only
    labels = round(UNIQUE_LABELS * dialogues)
    alerts = both + hint_only
    extra = labels - alerts - both - confirm_only

    sets = spread(
        ((tuple(Event(*n.split(".")) for n in names.split()), weight) for names, weight in SEVERAL),
        extra,
        rng,
    )
    while sum(len(events) - 1 for events in sets) > extra:
        sets.pop()
    if sum(len(events) - 1 for events in sets) < extra:
        sets.append((Event("SI_passive", "ongoing"), Event("SH", "ongoing")))

    # Half of the sets have an alert, for their first event.
    hinted_sets, plain_sets = sets[::2], sets[1::2]
    ongoing = round(ALERT_ONGOING * labels)
    hints = apportion([ongoing, alerts - ongoing], hint_only)
    in_sets = sum(events[0].state == "ongoing" for events in hinted_sets)
    singles = both - len(hinted_sets)
    single_ongoing = ongoing - hints[0] - in_sets

    event_sets = [*hinted_sets]
    event_sets += [(event,) for event in _draw("ongoing", single_ongoing, rng)]
    event_sets += [(event,) for event in _draw("past", singles - single_ongoing, rng)]
    plain = [*plain_sets]
    plain += [(event,) for event in _draw("", confirm_only - len(plain_sets), rng)]
    cases = [Case() for _ in range(none)]
    for state, count in zip(("ongoing", "past"), hints, strict=True):
        cases += [Case((Step("alert", (Event("any", state),)),)) for _ in range(count)]
    cases += [Case((Step("alert", events[:1]), Step("confirm", events))) for events in event_sets]
    cases += [Case((Step("confirm", events),)) for events in plain]
    return cases


def _draw(state: str, count: int, rng: random.Random) -> list[Event]:
    """Draws single events with the frequencies of the test split; an empty state means both."""
    return spread(
        (
            (event, weight)
            for event, weight in sorted(CONFIRMS.items())
            if state in ("", event.state)
        ),
        count,
        rng,
    )
