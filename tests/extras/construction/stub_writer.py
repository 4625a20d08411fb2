"""A writer that obeys the prompt: what a server answers in tests."""

from __future__ import annotations

import hashlib
import random
import re

WORDS = re.findall(
    r"\w+",
    "apple basket candle drawer evening forest garden harbour island jacket kettle letter morning "
    "novel orchard paper quilt river summer table umbrella valley window yellow",
)
TURNS = {"early": 3, "mid": 7, "late": 11}


def part(prompt: str, title: str) -> str:
    """The line below a title of the prompt."""
    found = re.search(rf"# {title}[^\n]*\n([^\n]*)", prompt)
    assert found, title
    return found[1]


def is_repair(prompt: str) -> bool:
    return "# What is wrong with it" in prompt


def good(prompt: str) -> str:
    """A valid training dialogue for a prompt: the same for the same prompt, and like no other."""
    rng = random.Random(hashlib.sha256(prompt.encode()).hexdigest())
    labels, phase = part(prompt, "The labels of"), part(prompt, "The phase")
    lines = []
    for turn in range(1, 16):
        line = f"{('Listener', 'User')[turn % 2]}: {' '.join(rng.sample(WORDS, 8))}."
        if labels != "no crisis" and turn == TURNS[phase]:
            line += f" TAG: {labels}"
        lines.append(line)
    return "\n".join(lines)
