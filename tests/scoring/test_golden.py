"""Micro F1 of every shipped run, recomputed in plain Python from the files."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import load_predictions
from cradle_lib.scoring.conventions import LEVELS, Level
from cradle_lib.scoring.evaluate import evaluate

RUNS = sorted(paths.SHIPPED_RUNS.rglob("*.jsonl"))


def read_labels(text: str) -> set[str]:
    return set() if text == "none" else set(text.split("; "))


def micro_f1(journal: Path, corpus: Path, level: Level) -> float:
    gold: dict[tuple[str, int], set[str]] = {}
    rows = pd.read_csv(corpus) if corpus.suffix == ".csv" else pd.read_parquet(corpus)
    number = -1
    released = [f"d{number:04d}" for number in range(len(rows))]
    names = rows["dialogue_id"].unique() if "dialogue_id" in rows else released
    for turn_id, text, labels in zip(rows["turn_id"], rows["text"], rows["labels"], strict=True):
        number += turn_id == 0  # A dialogue begins.
        if text.startswith("User:"):
            gold[names[number], turn_id] = read_labels(labels)

    predictions: dict[tuple[str, int], set[str]] = {}
    for line in map(json.loads, journal.read_text(encoding="utf-8").split("\n")[:-1]):
        if "record" not in line:  # A record is written at each start of a run.
            predictions[line["dialogue"], line["turn"]] = read_labels(line["labels"])

    units: dict[object, tuple[set[str], set[str]]] = {}
    for turn, predicted_labels in predictions.items():
        true, predicted = units.setdefault(turn if level == "turn" else turn[0], (set(), set()))
        true |= gold[turn]
        predicted |= predicted_labels

    tp = fp = fn = 0
    for true, predicted in units.values():
        if level == "confirm":
            true, predicted = ({x for x in s if x.startswith("confirm")} for s in (true, predicted))
        tp += len(true & predicted)
        fp += len(predicted - true)
        fn += len(true - predicted)
    return 2 * tp / (2 * tp + fp + fn)


@pytest.mark.parametrize(
    "path", RUNS, ids=lambda path: str(path.relative_to(paths.SHIPPED_RUNS).with_suffix(""))
)
def test_micro_f1_of_a_shipped_run_equals_plain_python(path: Path) -> None:
    corpus = path.parent.name
    file = paths.DATA / "surrogate" / f"{corpus.removeprefix('surrogate-')}.parquet"
    if corpus == "probes":
        file = paths.DATA / "probes" / "probes.csv"
    run = load_predictions(path, load_corpus(file), partial=True)
    for level in LEVELS:
        found = evaluate(run, level=level, draws=0).estimate("micro_f1").value
        assert float(found) == micro_f1(path, file, level)
