"""What the token ids of prompts have in common: found by comparing them, never assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cradle_lib.detection.local.local_engine import Local
from cradle_lib.detection.session import Prompt

# Ways to go on after the static text; a tokenizer may merge its end with any of them.
_PROBES: Final = ("~", "0", "\n")


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """Counts the ids that two sequences start with alike."""
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return index
    return min(len(one), len(other))


def shared_prefix(local: Local, prompt: Prompt | None) -> list[int]:
    """Finds the tokens that every prompt of a run starts with, from any of them; none without one.

    They are those that its encoding shares with encodings in which the static text goes on in
    other ways: what differs from there on can't reach back.
    """
    if prompt is None:
        return []
    static = prompt.text[: prompt.static]
    probes = (replace(prompt, text=static + probe) for probe in _PROBES)
    encoded, *others = local.ids([prompt, *probes])
    return encoded[: min(common(encoded, other) for other in others)]
