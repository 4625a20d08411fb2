"""Names of runs on a page: different for each run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.record import Record, differing, with_prompt_names

# Values that may be part of a name.
_SHORT: Final = re.compile(r"[\w .:/+-]{1,40}")


def renamed(run: Predictions, name: str) -> Predictions:
    """Copies a run with another name in its record."""
    return replace(run, record=run.record.model_copy(update={"name": name}))


def with_distinct_names(runs: Sequence[Predictions]) -> list[Predictions]:
    """Gives runs different names: a repeated name is followed by what differs from the first run.

    For example ``Small, temperature 0.7``; without a difference ``Small, run 2``.
    """
    found: dict[str, Predictions] = {}
    for run in runs:
        name = run.record.name
        if name in found:
            name = ", ".join([name, *_distinctions(run.record, found[name].record)])
        plain, number = name, 1
        while name in found:
            number += 1
            name = f"{plain}, run {number}"
        found[name] = renamed(run, name)
    return list(found.values())


def _distinctions(record: Record, first: Record) -> list[str]:
    """Lists what distinguishes a run from another one of the same name, for its own name."""
    differences = differing(record.flat_settings, first.flat_settings)
    differences = with_prompt_names(differences, record.prompt, first.prompt)
    differences.pop("corpus", None)
    if "model" in differences:
        return [record.model]
    parts = []
    for name, (own, _) in differences.items():
        words = name.removesuffix("_hash").replace("_", " ")
        if own is None:
            parts.append(f"without {words}")
        elif name in ("prompt_hash", "revision", "code") or not _SHORT.fullmatch(str(own)):
            parts.append(f"other {words}")
        else:
            parts.append(f"{words} {own}")
    return parts
