"""The annotations of the surrogate are the blind readings, converted without a loss."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from cradle_extras.label_studio.exports import SHIPPED
from cradle_lib.annotation.adjudication import adjudicate
from cradle_lib.annotation.load import load_annotations
from cradle_lib.annotation.voting import Outcome
from cradle_lib.corpus import load_corpus
from cradle_lib.errors import CorpusError
from tools.annotations import build
from tools.surrogate import readings

FOLDER = Path(__file__).resolve().parents[2] / "data" / "surrogate" / "dialogues" / "readings"
TEAMS = {"A": "1", "B": "1", "C": "2", "D": "2"}

Labels = dict[str, dict[int, str]]


def kept(pattern: str) -> list[tuple[str, dict[str, object]]]:
    """Returns the reader and content of each answer in some files, read as plain JSON."""
    return [
        (path.stem.rpartition("-")[2], json.loads(line))
        for path in sorted(FOLDER.glob(pattern))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def annotated(role: str) -> dict[tuple[str, str], dict[int, str]]:
    """Returns the labels of the table by person and dialogue; turns without a label left out."""
    table = pd.read_parquet(SHIPPED / "annotations.parquet")
    table = table[table["role"] == role]
    found: dict[tuple[str, str], dict[int, str]] = {}
    for who, dialogue, turn, labels in table[
        ["annotator", "dialogue", "turn_id", "labels"]
    ].itertuples(index=False):
        own = found.setdefault((who, dialogue), {})
        if labels != "none":
            own[turn] = labels
    return found


def test_each_dialogue_has_the_labels_of_two_readers_of_its_last_version() -> None:
    table = annotated("annotator")
    people = Counter(dialogue for _, dialogue in table)
    assert len(people) == 600
    assert set(people.values()) == {2}
    last = readings.text_names("test")
    first = {
        (reader, answer["dialogue"]): answer
        for reader, answer in kept("test-[0-9]*-[A-D].jsonl")
        if answer["dialogue"] != "real"
    }
    again = {
        (reader, answer["dialogue"]): answer
        for reader, answer in kept("test-again-*.jsonl")
        if answer["text"] == last.get(str(answer["dialogue"]))
    }
    replaced = 0
    for (who, dialogue), labels in table.items():
        name = f"test-{dialogue[1:]}"
        answer = first[who, name]
        if answer["text"] != last[name]:
            answer = again["GH"["ABCD".index(who) % 2], name]
            replaced += 1
        assert answer["text"] == last[name]
        expected = {int(row): "; ".join(given) for row, given in answer["labels"].items()}  # type: ignore[attr-defined]
        assert {turn: "; ".join(sorted(given.split("; "))) for turn, given in labels.items()} == (
            expected
        )
    assert replaced == 2 * 461


def test_experts_of_the_other_team_decide_where_the_annotators_differ() -> None:
    first: dict[str, list[dict[int, str]]] = {}
    teams: dict[str, str] = {}
    for (who, dialogue), labels in annotated("annotator").items():
        first.setdefault(dialogue, []).append(labels)
        teams[dialogue] = TEAMS[who]
    differing = {dialogue for dialogue, (one, other) in first.items() if one != other}
    turns = sum(
        one.get(turn) != other.get(turn)
        for one, other in first.values()
        for turn in one.keys() | other.keys()
    )
    # The README gives these numbers.
    assert (len(differing), turns) == (11, 14)
    experts = annotated("adjudicator")
    assert {dialogue for _, dialogue in experts} == differing
    assert all(TEAMS[who] != teams[dialogue] for who, dialogue in experts)
    outcomes = adjudicate(load_annotations(load_corpus("surrogate", "test"))).counts
    assert outcomes[Outcome.EXACT] == 600 - len(differing)
    assert sum(outcomes.values()) == 600


def test_the_conversion_gives_the_shipped_bytes(tmp_path: Path) -> None:
    (tmp_path / "round9-Z.json.gz").write_bytes(b"of an older study")
    build.build_annotations(tmp_path)
    names = sorted(path.name for path in SHIPPED.iterdir() if path.suffix != ".md")
    assert names == sorted(path.name for path in tmp_path.iterdir())
    for name in names:
        assert (tmp_path / name).read_bytes() == (SHIPPED / name).read_bytes()
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 3_000_000


def test_a_missing_reading_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in FOLDER.glob("test-*.jsonl"):
        if path.name != "test-03-B.jsonl":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(build, "READINGS", tmp_path)
    with pytest.raises(CorpusError, match=r"no reading of test-\d{4} by annotator B"):
        build.build_annotations(tmp_path / "out")
