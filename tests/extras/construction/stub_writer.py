"""Answers of a stub writer that follows the prompt."""

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
    """Returns the line below a heading of the prompt."""
    found = re.search(rf"# {title}[^\n]*\n([^\n]*)", prompt)
    assert found, title
    return found[1]


def is_repair(prompt: str) -> bool:
    return "# What is wrong with it" in prompt


def good(prompt: str) -> str:
    """Returns a valid training dialogue that depends only on the prompt."""
    rng = random.Random(hashlib.sha256(prompt.encode()).hexdigest())
    labels, phase = part(prompt, "The labels of"), part(prompt, "The phase")
    lines = []
    for turn in range(1, 16):
        line = f"{('Listener', 'User')[turn % 2]}: {' '.join(rng.sample(WORDS, 8))}."
        if labels != "no crisis" and turn == TURNS[phase]:
            line += f" TAG: {labels}"
        lines.append(line)
    return "\n".join(lines)
