"""Plans of the written dialogues: ``data/surrogate/dialogues/plans.jsonl``.

They are the plans of :mod:`annotated` and :mod:`generated` with three changes, none of which
changes a published count:

- In the test split, alerts and confirms are placed again, so that the distance between an alert
  and its confirm is one user turn in a third of the pairs, two or three in a third, and more in a
  third. An early confirm leaves no room for this: therefore more of the dialogues with an alert
  and a confirm are late, and more of those with only a confirm are early.
- No label is on the last row of a dialogue. In train and dev, such a dialogue exchanges its length
  with another one.
- No dialogue about an ongoing abuse of a child has another label about an adult: the event is
  exchanged with one of another dialogue.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Final

from cradle_extras.construction.plan import Event, Plan, Step, Timing
from cradle_extras.construction.scenarios import fitting_scenarios
from cradle_lib import paths, strict_json
from cradle_lib.errors import CorpusError
from cradle_lib.labels import labels_of
from tools.surrogate.annotated import insert_list, plan_annotated
from tools.surrogate.generated import plan_generated
from tools.surrogate.quotas import shuffled

SEED: Final = 2606
DIALOGUES: Final = paths.SURROGATE / "dialogues"
PLANS: Final = DIALOGUES / "plans.jsonl"
SPLITS: Final = ("test", "dev", "train")
#: Turns, counted from 1, on which the first label (of confirms, if there are any) may be.
WINDOWS: Final[dict[Timing, tuple[int, int]]] = {"early": (1, 3), "mid": (4, 6), "late": (7, 11)}
#: Dialogues of the test split with an alert and a confirm; the rest of the 203 are late.
PAIRS: Final[dict[Timing, int]] = {"early": 30, "mid": 60}
#: Upper ends of the three classes of distances, in user turns.
DISTANCES: Final = (1, 3, 99)
CHILD: Final = Event("CA", "ongoing")
ADULT: Final = frozenset({"DV", "SHA", "RA"})


@dataclass(frozen=True, slots=True)
class DialoguePlan:
    """The plan of one written dialogue.

    Attributes:
        id: Split and number, such as ``test-0007``.
        split: ``test``, ``dev`` or ``train``.
        dialogue: Number in the split, from 0.
        scenario: ``S1`` to ``S7``.
        timing: ``early``, ``mid`` or ``late``.
        rows: For each row the speaker (``U``, ``L``, or ``-`` for a row that continues the row
            above) and its labels.
        hash: Checksum of scenario, timing and rows; the text file repeats it.
    """

    id: str
    split: str
    dialogue: int
    scenario: str
    timing: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    hash: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels, first to last."""
        return tuple(label for _, labels in self.rows for label in labels)

    def checksum(self) -> str:
        """Computes :attr:`hash`."""
        content = json.dumps([self.scenario, self.timing, self.rows])
        return hashlib.sha256(content.encode()).hexdigest()[:10]


def plan_split(split: str) -> list[Plan]:
    """Plans the dialogues of a split, the same ones at every call."""
    rng = random.Random(f"{SEED} {split} plan")
    plans = plan_annotated(rng) if split == "test" else plan_generated(split, rng)
    plans = _separate_child_abuse(plans)
    own = random.Random(f"{SEED} {split} places")
    return _draw_places(plans, own) if split == "test" else _free_last_rows(plans)


def dialogue_plans(split: str) -> list[DialoguePlan]:
    """Gives the plans of a split in the form of the file."""
    return [_dialogue_plan(split, plan) for plan in plan_split(split)]


def write_plans(path: Path = PLANS) -> None:
    """Writes the plans of all splits as JSON lines."""
    plans = (plan for split in SPLITS for plan in dialogue_plans(split))
    path.write_text("".join(f"{json.dumps(asdict(plan))}\n" for plan in plans), encoding="ascii")


@cache
def read_plans(path: Path = PLANS) -> dict[str, DialoguePlan]:
    """Reads the plans, by id.

    Raises:
        CorpusError: If a line is not a plan, or does not have its checksum.
    """
    plans = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        try:
            fields = strict_json.loads(line)
            rows = tuple((speaker, tuple(labels)) for speaker, labels in fields.pop("rows"))
            plan = DialoguePlan(rows=rows, **fields)
        except (ValueError, TypeError, KeyError, AttributeError):
            plan = None
        if plan is None or plan.hash != plan.checksum():
            raise CorpusError(
                "the line is not a plan with its checksum",
                path=paths.shown(path),
                row=number,
                hint="Run `python -m tools.surrogate plan`.",
            )
        plans[plan.id] = plan
    return plans


def _dialogue_plan(split: str, plan: Plan) -> DialoguePlan:
    rows = tuple(
        ({"U": "U", "L": "L"}.get(letter, "-"), tuple(labels_of(mask)))
        for letter, mask in zip(plan.rows, plan.masks(), strict=True)
    )
    number = int(plan.dialogue)
    made = DialoguePlan(f"{split}-{number:04}", split, number, plan.scenario, plan.timing, rows)
    return replace(made, hash=made.checksum())


def _separate_child_abuse(plans: list[Plan]) -> list[Plan]:
    """Exchanges the ongoing abuse of a child, if the same dialogue has a label about an adult."""
    found = list(plans)
    for i, plan in enumerate(found):
        if CHILD in plan.events and any(event.type in ADULT for event in plan.events):
            j, event = next(
                (j, event)
                for j, other in enumerate(found)
                for event in other.events
                if len(other.events) == 1
                and event.state == CHILD.state
                and event.type in ADULT
                and event not in plan.events
                and plan.scenario in fitting_scenarios([f"confirm_{event.type}_{event.state}"])
            )
            found[i] = _exchange(plan, CHILD, event)
            found[j] = _exchange(found[j], event, CHILD)
    return found


def _exchange(plan: Plan, old: Event, new: Event) -> Plan:
    steps = (
        Step(step.stage, tuple(new if event == old else event for event in step.events))
        for step in plan.steps
    )
    return replace(plan, steps=tuple(steps))


def _free_last_rows(plans: list[Plan]) -> list[Plan]:
    """Gives dialogues with a label on the last row the length of a longer one."""
    found = list(plans)
    for i, plan in enumerate(found):
        last = max(plan.places, default=0)
        if last == len(plan.rows) - 1:
            j = next(
                j
                for j, other in enumerate(found)
                if len(other.rows) > len(plan.rows) and max(other.places, default=0) < last
            )
            found[i] = replace(plan, rows=found[j].rows)
            found[j] = replace(found[j], rows=plan.rows)
    return found


def _kind(plan: Plan) -> str:
    return " ".join(sorted({step.stage for step in plan.steps}))


def _draw_places(plans: list[Plan], rng: random.Random) -> list[Plan]:
    """Draws the timing and rows of the labels of the test split again."""
    found = _move_pairs(plans, rng)
    options = {
        i: list(_options(plan)) for i, plan in enumerate(found) if plan.steps and not plan.odd_row
    }
    pairs = [i for i in options if _kind(found[i]) == "alert confirm"]
    left = [len(pairs) // len(DISTANCES)] * len(DISTANCES)
    left[0] += len(pairs) - sum(left)
    # Dialogues with the least choice come first.
    order = sorted(
        shuffled(options, rng),
        key=lambda i: (i in pairs, len({o.distance for o in options[i] if o.cost == 0})),
    )
    for i in order:
        able = options[i]
        if i in pairs:
            able = [o for o in able if left[o.distance]] or able
        cheapest = min(option.cost for option in able)
        able = [option for option in able if option.cost == cheapest]
        if i in pairs:
            most = max(able, key=lambda option: left[option.distance]).distance
            able = [option for option in able if option.distance == most]
            left[most] -= 1 if left[most] else 0
        chosen = able[int(rng.random() * len(able))]
        found[i] = _place(found[i], chosen.places, rng)
    return found


def _move_pairs(plans: list[Plan], rng: random.Random) -> list[Plan]:
    """Exchanges timings, so that more alerts have room before their confirm."""
    found = list(plans)
    for timing, target in PAIRS.items():
        pairs = [
            i
            for i, plan in enumerate(found)
            if plan.timing == timing and _kind(plan) == "alert confirm"
        ]
        movable = [i for i in pairs if len(found[i].steps) == 2]
        others = [
            i
            for i, plan in enumerate(found)
            if plan.timing == "late" and _kind(plan) == "confirm" and not plan.odd_row
        ]
        surplus = len(pairs) - target
        for i, j in zip(shuffled(movable, rng)[:surplus], shuffled(others, rng), strict=False):
            found[i] = replace(found[i], timing="late")
            found[j] = replace(found[j], timing=timing)
    return found


@dataclass(frozen=True, slots=True)
class _Option:
    """Rows for the labels; ``distance`` is the class of the first alert's distance."""

    places: tuple[int, ...]
    distance: int
    cost: int


def _options(plan: Plan) -> Iterator[_Option]:
    """Gives all user rows for the labels within the window of the timing.

    It is a cost if an alert is on the first user turn, or no user turn follows the last label.
    """
    utterances = _utterances(plan)
    user = [row for row, who in enumerate(utterances) if who == "U"]
    stages = [step.stage for step in plan.steps]
    main = stages.index("confirm") if "confirm" in stages else 0
    low, high = WINDOWS[plan.timing]
    for turns in combinations(range(len(user)), len(stages)):
        places = tuple(user[turn] for turn in turns)
        if low <= places[main] + 1 <= high and places[-1] < len(utterances) - 1:
            opening = stages[0] == "alert" and turns[0] == 0
            cost = opening + (turns[-1] == len(user) - 1)
            apart = turns[1] - turns[0] if len(turns) > 1 else 0
            distance = next(k for k, most in enumerate(DISTANCES) if apart <= most)
            yield _Option(places, distance, cost)


def _utterances(plan: Plan) -> str:
    return "".join(letter for letter in plan.rows if letter.isupper())


def _place(plan: Plan, places: tuple[int, ...], rng: random.Random) -> Plan:
    utterances = _utterances(plan)
    size = len(plan.rows) - len(utterances)
    rows, kept = insert_list(utterances, size, places, rng)
    return replace(plan, rows=rows, places=kept)
