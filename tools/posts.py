"""Makes the sixty mild posts in ``data/posts`` from the phrase bank: ``python -m tools.posts``."""

from __future__ import annotations

import csv
import random
from typing import Final

from cradle_extras.construction.plan import Event
from cradle_extras.construction.posts import BENCH_LABELS, SHIPPED
from cradle_extras.construction.writers.bank import Bank, SurfaceForms
from cradle_extras.construction.writers.voices import finish
from cradle_lib import paths
from cradle_lib.files import replacing

SEED: Final = 16
OF_EACH: Final = 3
NO_CRISIS: Final = 12
SEVERAL: Final = (
    "SI_passive.ongoing SH.ongoing",
    "SI_passive.ongoing SI_active.past",
    "CA.past RA.past",
    "DV.past RA.past",
    "CA.past SH.ongoing",
    "DV.ongoing SI_passive.ongoing",
)
TITLES: Final = (
    "Not sure where to put this",
    "Long week",
    "I don't know who else to tell",
    "Does anybody else feel like this",
    "Needed to write this down",
    "First time posting here",
    "Trying to find words",
    "A bit of everything",
    "Just need somebody to listen",
    "This has been on my mind",
)
ENDINGS: Final = (
    "Thanks for reading.",
    "I just needed to say it somewhere.",
    "I don't know what I'm asking for.",
    "Sorry that this is long.",
    "Any kind word would help.",
    "Has anybody been through something like this?",
)


def make_posts() -> list[dict[str, str]]:
    """Makes the posts; the same phrases give the same posts."""
    bank = Bank.load(paths.PHRASES)
    rng = random.Random(f"{SEED} posts")
    names = {confirm: name for name, confirm in BENCH_LABELS.items()}
    sets: list[tuple[Event, ...]] = [
        (Event.of(confirm),) for confirm in names for _ in range(OF_EACH)
    ]
    sets += [tuple(Event(*key.split(".")) for key in keys.split()) for keys in SEVERAL]
    sets += [()] * NO_CRISIS
    posts = []
    for number, events in enumerate(sets, start=1):
        labels = [names[f"confirm_{event.type}_{event.state}"] for event in events]
        posts.append(
            {
                "id": f"p{number:02d}",
                "title": TITLES[int(rng.random() * len(TITLES))],
                "text": _text(bank, events, rng),
                "labels": "; ".join(labels) or "no_crisis",
            }
        )
    return posts


def _text(bank: Bank, events: tuple[Event, ...], rng: random.Random) -> str:
    forms = SurfaceForms(bank, lambda n: int(rng.random() * n))
    topics = bank.named(r"topic\.[^.]+\.open")
    topic = topics[int(rng.random() * len(topics))]
    sections = [topic, topic.replace(".open", ".user")]
    for event in events:
        sections += [f"before.{event.type}", f"confirm.{event.key}", f"after.{event.key}"]
    sections += [] if events else ["distract.venting", topic.replace(".open", ".user")]
    said: list[str] = []
    for section in sections:
        phrases = bank.sections[section]
        phrase = phrases[int(rng.random() * len(phrases))]
        said.append(finish(forms.expand(phrase.text, listener=False)))
    return " ".join([*dict.fromkeys(said), ENDINGS[int(rng.random() * len(ENDINGS))]])


if __name__ == "__main__":
    with replacing(SHIPPED) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ("id", "title", "text", "labels"), lineterminator="\n")
        writer.writeheader()
        writer.writerows(make_posts())
