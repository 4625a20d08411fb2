"""The plans and seeds of the written dialogues, read as plain JSON."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from cradle_lib.errors import CorpusError
from tools.surrogate.plans import read_plans

DATA = Path(__file__).resolve().parents[2] / "data"
FOLDER = DATA / "surrogate" / "dialogues"
SPLITS = ("test", "dev", "train")


@cache
def read(name: str) -> list[dict[str, Any]]:
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def plans(split: str) -> list[dict[str, Any]]:
    return [plan for plan in read("plans") if plan["split"] == split]


def labels(plan: dict[str, Any]) -> list[str]:
    return [label for _, names in plan["rows"] for label in names]


def places(plan: dict[str, Any], stage: str) -> list[int]:
    """Returns the rows, from 0, that have a label of a stage."""
    rows = enumerate(plan["rows"])
    return [row for row, (_, names) in rows if any(name.startswith(stage) for name in names)]


def test_alerts_of_the_test_split_have_mixed_distances() -> None:
    distances = []
    opening = 0
    for plan in plans("test"):
        speakers = "".join(speaker for speaker, _ in plan["rows"])
        alerts, confirms = places(plan, "alert"), places(plan, "confirm")
        opening += bool(alerts) and "U" not in speakers[: alerts[0]]
        for alert in alerts:
            later = [at for at in confirms if at > alert]
            distances += [speakers[alert : later[0]].count("U")] if later else []
    thirds = Counter("1" if d == 1 else "2-3" if d <= 3 else "4+" for d in distances)
    assert all(abs(thirds[k] / len(distances) - 1 / 3) < 0.05 for k in ("1", "2-3", "4+"))
    assert opening < 60


@pytest.mark.parametrize("edit", [("early", "late"), ("{", "["), ('"rows"', '"row"')])
def test_an_edited_plan_is_refused(edit: tuple[str, str], tmp_path: Path) -> None:
    lines = (FOLDER / "plans.jsonl").read_text(encoding="utf-8").splitlines()[:9]
    at = next(at for at, line in enumerate(lines) if "early" in line)
    lines[at] = lines[at].replace(*edit)
    file = tmp_path / "plans.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(CorpusError, match=rf"plans\.jsonl, row {at}: .*checksum"):
        read_plans(file)


def test_no_topic_is_shared_between_splits() -> None:
    topics: dict[str, set[str]] = {split: set() for split in SPLITS}
    for seed in read("seeds"):
        topics[seed["id"].split("-")[0]].add(seed["topic"])
    everywhere = {"the trouble itself", "small talk"}
    for one, other in combinations(topics.values(), 2):
        assert one & other == everywhere
    assert len(set.union(*topics.values())) > 250
