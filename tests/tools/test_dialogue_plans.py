"""The plans and seeds of the written dialogues, read as plain JSON."""

from __future__ import annotations

import csv
import json
import statistics
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cradle_lib.errors import CorpusError
from tools.surrogate.plans import read_plans

DATA = Path(__file__).resolve().parents[2] / "data"
FOLDER = DATA / "surrogate" / "dialogues"
SPLITS = ("test", "dev", "train")
# Turns, counted from 1, of the first confirm, or of the alert if there is none.
TEST_WINDOWS = {"early": range(1, 4), "mid": range(4, 7), "late": range(7, 12)}
TRAIN_WINDOWS = {"early": (3, 5, 7), "mid": (7, 9, 11), "late": (11, 13, 15)}
YOUNG = {"13-14", "15-16", "16-17", "17-18"}


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


def published(name: str) -> dict[str, Any]:
    with (DATA / "published" / name).open(encoding="utf-8") as file:
        return {row[0]: row[1] for row in csv.reader(file)}


def test_the_plans_are_numbered_in_the_order_of_the_corpus() -> None:
    sizes = {"test": 600, "dev": 420, "train": 3058}
    expected = [f"{split}-{number:04}" for split in SPLITS for number in range(sizes[split])]
    assert [plan["id"] for plan in read("plans")] == expected
    assert [seed["id"] for seed in read("seeds")] == expected


def test_the_test_split_has_the_published_counts() -> None:
    every, counts = plans("test"), published("published.csv")
    rows = [row for plan in every for row in plan["rows"]]
    user = Counter(label for speaker, names in rows if speaker == "U" for label in names)
    expected = published("label_counts.csv")
    del expected["label"]
    assert user == {label: int(count) for label, count in expected.items()}
    found = {
        "dialogues": len(every),
        "turns": len(rows),
        "user_turns": sum(speaker == "U" for speaker, _ in rows),
        "labels": sum(len(names) for _, names in rows),
        "dialogues_with_alert": sum(bool(places(p, "alert")) for p in every),
        "dialogues_with_confirm": sum(bool(places(p, "confirm")) for p in every),
        "dialogues_with_both": sum(
            bool(places(p, "alert") and places(p, "confirm")) for p in every
        ),
        "dialogues_with_neither": sum(not labels(p) for p in every),
    }
    assert found == {name: int(counts[f"corpus.{name}"]) for name in found}
    for scenario, count in Counter(plan["scenario"] for plan in every).items():
        assert count == int(counts[f"scenario.{scenario}"])
    assert Counter(plan["timing"] for plan in every) == {"early": 200, "mid": 200, "late": 200}
    others = [(speaker, names) for speaker, names in rows if speaker != "U" and names]
    assert sorted(others) == [("-", ["confirm_SH_ongoing"]), ("L", ["alert_ongoing"])]
    assert Counter(len(names) for speaker, names in rows if speaker == "U")[2] == 8
    for name, stage in {"labels": "", "alerts": "alert", "confirms": "confirm"}.items():
        # The release counts each label once per dialogue.
        own = [len({x for x in labels(plan) if x.startswith(stage)}) for plan in every]
        mean, sd = (float(counts[f"corpus.{name}_per_dialogue_{kind}"]) for kind in ("mean", "sd"))
        assert statistics.fmean(own) == pytest.approx(mean, abs=0.005)
        assert statistics.stdev(own) == pytest.approx(sd, abs=0.005)


@pytest.mark.parametrize(("split", "rows"), [("dev", 6679), ("train", 48557)])
def test_train_and_dev_follow_the_training_prompt(split: str, rows: int) -> None:
    every = plans(split)
    assert sum(len(plan["rows"]) for plan in every) == rows
    for plan in every:
        speakers = [speaker for speaker, _ in plan["rows"]]
        assert speakers == ["UL"[at % 2] for at in range(len(speakers))]
        assert len(speakers) >= 15
        alerts, confirms = places(plan, "alert"), places(plan, "confirm")
        assert len(alerts) <= 1
        assert len(confirms) <= 1
        assert all(plan["rows"][at][0] == "U" for at in (*alerts, *confirms))
        assert all(a < c for a in alerts for c in confirms)
        assert all(c + 1 in TRAIN_WINDOWS[plan["timing"]] for c in confirms)


def test_confirms_of_the_test_split_are_in_the_window_of_their_timing() -> None:
    for plan in plans("test"):
        first = places(plan, "confirm") or places(plan, "alert")
        # The labelled list item comes after the items above it.
        if first and plan["rows"][first[0]][0] != "-":
            assert first[0] + 1 in TEST_WINDOWS[plan["timing"]], plan["id"]


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


@pytest.mark.parametrize("split", SPLITS)
def test_labels_can_be_written(split: str) -> None:
    for plan in plans(split):
        own = set(labels(plan))
        assert not plan["rows"][-1][1], plan["id"]
        if "confirm_CA_ongoing" in own:
            assert not any(name.split("_")[1] in ("DV", "SHA", "RA") for name in own), plan["id"]
        unused: Counter[str] = Counter()
        if not places(plan, "confirm"):
            continue
        # Going backwards, each alert uses up one of the later confirms of its state.
        for name in (name for _, names in reversed(plan["rows"]) for name in sorted(names)):
            state = name.rpartition("_")[2]
            unused[state] += 1 if name.startswith("confirm") else -1
            assert unused[state] >= 0, plan["id"]


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
    assert topics["test"] & topics["dev"] == everywhere
    assert topics["test"] & topics["train"] == everywhere
    assert topics["dev"] & topics["train"] == everywhere
    assert len(set.union(*topics.values())) > 250


def test_seeds_fit_their_plans() -> None:
    for plan, seed in zip(read("plans"), read("seeds"), strict=True):
        crises = {name.split("_")[1] for name in labels(plan) if name.startswith("confirm")}
        young, where = seed["age"] in YOUNG, plan["scenario"]
        if "confirm_CA_ongoing" in labels(plan):
            assert seed["age"] in YOUNG - {"17-18"}
            assert not seed["doubtful_row"]
        if crises & {"DV", "SHA", "RA"}:
            assert not young, seed
        if where == "S3":
            assert young or "university" in seed["age"]
        if "DV" in crises:
            partners = ("friend", "husband", "wife", "partner", "fiancé", "father of the children")
            assert any(word in seed["relation"] for word in partners)
        if young and "CA" not in crises:
            assert not any(word in seed["relation"] for word in ("husband", "wife", "daughter"))
        if seed["voice"] == "teen":
            assert young or seed["age"].startswith("18-24")
        if seed["voice"] == "formal":
            assert not young
            assert seed["typing"] == "stops"
        if seed["voice"] in ("texter", "terse_lower"):
            assert seed["typing"] == "lower"
        assert seed["listener"] != seed["relation"]
        assert labels(plan) or seed["near_miss"]
        if seed["listener_style"].startswith("misses the hint"):
            assert places(plan, "alert")


@pytest.mark.parametrize("split", SPLITS)
def test_seeds_have_their_quotas(split: str) -> None:
    seeds = [seed for seed in read("seeds") if seed["id"].startswith(split)]

    def share(key: str, *values: Any) -> float:
        return sum(seed[key] in values for seed in seeds) / len(seeds)

    assert share("typing", "lower") == pytest.approx(0.3, abs=0.01)
    assert share("typing", "nostop") == pytest.approx(0.3, abs=0.01)
    assert share("dates", True) == pytest.approx(0.25, abs=0.01)
    assert share("long_row", True) == pytest.approx(0.5, abs=0.01)
    assert share("voice", "plain") == pytest.approx(5 / 16, abs=0.01)
    assert share("voice", "dry") < 0.25
    assert share("listener_style", "misses the hint and catches up") < 1 / 6
    assert max(Counter(seed["relation"] for seed in seeds).values()) < 0.05 * len(seeds)
    topics = Counter(seed["topic"] for seed in seeds)
    assert sum(topics[name] for name in ("the trouble itself", "small talk")) > 0.4 * len(seeds)
