"""Draws the circumstances of each written dialogue: ``data/surrogate/dialogues/seeds.jsonl``.

The entries are in ``seed_tables.yml``. Each table is used up before an entry comes again, except
where an entry does not fit the dialogue: then the next one that fits is taken.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths, strict_json, strict_yaml
from cradle_lib.errors import CorpusError
from tools.surrogate.plans import ADULT, DIALOGUES, SPLITS, DialoguePlan, dialogue_plans
from tools.surrogate.quotas import shuffled

SEED: Final = 47
SEEDS: Final = DIALOGUES / "seeds.jsonl"
TABLES: Final[dict[str, Any]] = strict_yaml.read(Path(__file__).with_name("seed_tables.yml"))
#: Topics without an errand or an object; all other topics belong to one split.
NO_FRAME: Final = frozenset(TABLES["no_frame"])
YOUNG: Final = frozenset({"13-14", "15-16", "16-17", "17-18"})
#: Labels after which the listener always asks about safety.
ACUTE: Final = frozenset(f"confirm_{crisis}_ongoing" for crisis in ("SI_active", "DV", "CA", "RA"))
PEER: Final = frozenset({"S1", "S6", "S7"})
# Listeners who share a household with the user, and therefore hear nothing about child abuse.
_FAMILY: Final = frozenset({"older sister", "older brother", "brother", "grandmother", "aunt"})
# Speech is not written like a text message.
_SPOKEN: Final = frozenset({"S2", "S3", "S4", "S5"})


@dataclass(frozen=True, slots=True)
class Seed:
    """The circumstances of one dialogue.

    Attributes:
        id: Id of the dialogue.
        age: The user's age.
        listener: Who listens.
        listener_style: How the listener talks.
        listener_rows: Length of the listener's rows: ``short``, ``mixed`` or ``paragraphs``.
        listener_empathy: How often the listener says plainly that they are sorry or that it
            sounds hard: ``often``, ``sometimes`` or ``never``.
        listener_asks_safety: Whether the listener asks about safety directly, after a hint.
        dialect: The English of both speakers.
        voice: How the user talks.
        typing: ``lower``, ``nostop`` or ``stops``.
        mood: The user's mood.
        topic: What frames the talk.
        relation: The other person in it.
        occasion: How the talk comes to it.
        wants: What the user wants.
        rhythm: Length of the user's rows over the dialogue.
        ending: How the dialogue ends.
        near_miss: Rows that a careless reader would label.
        long_row: Whether a user row has more than 40 words.
        dates: Whether weekdays, months or feasts may be named.
        doubtful_row: Whether one row stays open on purpose, so that readers may differ.
    """

    id: str
    age: str
    listener: str
    listener_style: str
    listener_rows: str
    listener_empathy: str
    listener_asks_safety: bool
    dialect: str
    voice: str
    typing: str
    mood: str
    topic: str
    relation: str
    occasion: str
    wants: str
    rhythm: str
    ending: str
    near_miss: tuple[str, ...]
    long_row: bool
    dates: bool
    doubtful_row: bool

    @property
    def short(self) -> str:
        """One line for the header of the text file."""
        cells = (
            self.age, self.listener, self.listener_style, self.dialect, self.voice, self.typing,
            self.mood, self.topic, self.ending,
        )  # fmt: skip
        return " | ".join(cells)


class _Bags:
    """Tables from which entries are drawn without replacement until they are used up."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._bags: dict[str, list[Any]] = {}

    def draw(
        self, key: str, entries: Iterable[Any], fits: Callable[[Any], bool] = lambda _: True
    ) -> Any:
        """Draws the next entry of a table that fits; the table is refilled if none does."""
        bag = self._bags.setdefault(key, [])
        if not any(map(fits, bag)):
            bag += shuffled(entries, self._rng)
        at = next((i for i, entry in enumerate(bag) if fits(entry)), None)
        if at is None:
            raise CorpusError(f"no entry of the table {key} fits")
        return bag.pop(at)


def draw_seeds(split: str, plans: Iterable[DialoguePlan] | None = None) -> list[Seed]:
    """Draws the seeds of a split, the same ones at every call."""
    bags = _Bags(random.Random(f"{SEED} {split} seeds"))
    return [_draw(plan, bags) for plan in (dialogue_plans(split) if plans is None else plans)]


def write_seeds(path: Path = SEEDS) -> None:
    """Writes the seeds of all splits as JSON lines."""
    seeds = (seed for split in SPLITS for seed in draw_seeds(split))
    lines = (f"{json.dumps(asdict(seed), ensure_ascii=False)}\n" for seed in seeds)
    path.write_text("".join(lines), encoding="utf-8")


@cache
def read_seeds(path: Path = SEEDS) -> dict[str, Seed]:
    """Reads the seeds, by id.

    Raises:
        CorpusError: If a line is not a seed.
    """
    seeds = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        try:
            fields = strict_json.loads(line)
            seed = Seed(**{**fields, "near_miss": tuple(fields["near_miss"])})
        except (ValueError, TypeError, KeyError):
            raise CorpusError(
                "the line is not a seed",
                path=paths.shown(path),
                row=number,
                hint="Run `python -m tools.surrogate plan`.",
            ) from None
        seeds[seed.id] = seed
    return seeds


def _draw(plan: DialoguePlan, bags: _Bags) -> Seed:
    crises = {
        label.split("_", 1)[1].rsplit("_", 1)[0] for label in plan.labels if "confirm" in label
    }
    child = "confirm_CA_ongoing" in plan.labels
    scenario = plan.scenario
    age = _age(scenario, crises, child, bags)
    young = age in YOUNG
    relation = _relation(age, crises, bags)
    topic = _topic(plan, age, bags)
    other = (_FAMILY if "CA" in crises else set()) | {relation}
    listener = _listener(scenario, age, child, topic, other, bags)
    topic = topic.partition(": ")[2] or topic
    style = bags.draw("style", _styles(), lambda entry: _style_fits(entry[0], plan))[1]
    voice = bags.draw("voice", TABLES["voice_quota"], lambda name: _voice_fits(name, age, scenario))
    typing = bags.draw("typing", TABLES["typing_quota"], lambda kind: _typing_fits(kind, voice))
    dialect = "plain international"
    if voice != "second_language":
        dialect = bags.draw("dialect", TABLES["dialects"])
    labelled = bool(plan.labels)
    return Seed(
        id=plan.id,
        age=age,
        listener=listener,
        listener_style=style,
        listener_rows=bags.draw("rows", ["short"] * 9 + ["mixed"] * 7 + ["paragraphs"] * 4),
        listener_empathy=bags.draw("empathy", ["often"] * 3 + ["sometimes"] * 4 + ["never"] * 3),
        listener_asks_safety=bool(ACUTE.intersection(plan.labels))
        or bags.draw(f"safety {labelled}", [True, False] if labelled else [True] + [False] * 7),
        dialect=dialect,
        voice=voice,
        typing=typing,
        mood=bags.draw("mood", TABLES["moods"]),
        topic=topic,
        relation=relation,
        occasion=bags.draw("occasion", TABLES["occasions"]),
        wants=bags.draw("wants", TABLES["wants"]),
        rhythm=bags.draw("rhythm", TABLES["rhythms"]),
        ending=bags.draw("ending", TABLES["endings"]),
        near_miss=_near_misses(labelled, young, bags),
        long_row=bags.draw("long row", [True, False]),
        dates=bags.draw("dates", [True, False, False, False]),
        doubtful_row=not child and bags.draw("doubtful", [True] + [False] * 9),
    )


def _age(scenario: str, crises: set[str], child: bool, bags: _Bags) -> str:
    if child:
        return str(bags.draw("child age", TABLES["child_ages"]))
    adult = bool(crises & ADULT)
    ages = [age for age in TABLES["ages"][scenario] if not (adult and age in YOUNG)]
    return str(bags.draw(f"age {scenario} {adult}", ages))


def _relation(age: str, crises: set[str], bags: _Bags) -> str:
    group = {"35-49": "older", "50-64": "older", "65+": "older"}.get(age, "adult")
    usual = "young" if age in YOUNG else group
    table = next((crisis for crisis in ("DV", "CA", "RA", "SHA") if crisis in crises), usual)
    if table == "DV" and age.startswith("18-24"):
        table = "DV_young_adult"
    return str(bags.draw(f"relation {table}", TABLES["relations"][table]))


def _topic(plan: DialoguePlan, age: str, bags: _Bags) -> str:
    """Half of the dialogues have a topic; for half of the others, the trouble is the topic."""
    young, scenario = age in YOUNG, plan.scenario
    # A schoolchild at the doctor's or on a helpline has no errand of an adult.
    framed = bags.draw("framed", [True, False]) and not (young and scenario in ("S4", "S5"))
    table = {"S3": "school", "S4": "medical", "S5": "office", "S6": "forum", "S7": "thread"}.get(
        scenario, "life"
    )
    if "university" in age:
        table = "university"
    elif young and scenario != "S7":
        table = "school"
    if framed:
        return str(bags.draw(f"topic {table}", TABLES["topics"][table][plan.split]))
    topic = str(bags.draw("no frame", TABLES["no_frame"]))
    if not plan.labels and topic == "the trouble itself" and not young:
        return str(bags.draw("topic trouble", TABLES["topics"]["trouble"][plan.split]))
    return topic


def _listener(
    scenario: str, age: str, child: bool, topic: str, other: AbstractSet[str], bags: _Bags
) -> str:
    office, found, _ = topic.partition(": ")
    if found:
        return office
    tables = TABLES["listeners"][scenario]
    groups = {"child": child, "young": age in YOUNG, "university": "university" in age}
    groups |= {"school": age in YOUNG, "older": age in ("50-64", "65+"), "adult": True}
    group = next(name for name, applies in groups.items() if applies and name in tables)
    key = f"listener {scenario} {group}"
    return str(bags.draw(key, tables[group], lambda name: name not in other))


def _styles() -> list[tuple[str, str]]:
    return [(kind, name) for kind, names in TABLES["listener_styles"].items() for name in names]


def _style_fits(kind: str, plan: DialoguePlan) -> bool:
    hint = any(label.startswith("alert") for label in plan.labels)
    peer = plan.scenario in PEER
    # Nobody at an office or a school leaves a hint without any answer.
    fits = {"office": not peer, "peer": peer, "hint": hint}
    fits["peer_hint"] = hint and plan.scenario in ("S6", "S7")
    return fits.get(kind, True)


def _voice_fits(voice: str, age: str, scenario: str) -> bool:
    if voice == "teen":
        return age in YOUNG or age.startswith("18-24")
    if voice == "formal":
        return age in ("25-34", "35-49", "50-64", "65+")
    if voice == "texter":
        return age not in ("50-64", "65+") and scenario not in _SPOKEN
    return True


def _typing_fits(typing: str, voice: str) -> bool:
    if voice in ("formal", "dry"):
        return typing == "stops"
    if voice in ("terse_lower", "texter", "teen"):
        return typing == "lower"
    return voice != "storyteller" or typing != "lower"


def _near_misses(labelled: bool, young: bool, bags: _Bags) -> tuple[str, ...]:
    if labelled:
        wanted = bags.draw("distracted", [1, 1, 0, 0, 0])
        return tuple(bags.draw("distractor", TABLES["distractors"]) for _ in range(wanted))
    tables = TABLES["near_misses"]
    age = "young" if young else "adult"
    entries = [(kind, entry) for kind in ("any", age) for entry in tables[kind]]
    wanted = bags.draw("near misses", [1, 2])
    return tuple(bags.draw(f"near miss {age}", entries)[1] for _ in range(wanted))
