"""Damaged corpora, journals, registries and exports are read truly or refused in a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cradle_extras.label_studio.exports import read_exports
from cradle_extras.label_studio.study import Study, plan_study
from cradle_extras.label_studio.tasks import write_tasks
from cradle_lib.corpus import Corpus, load_corpus, read_release
from cradle_lib.corpus.release import write_release
from cradle_lib.detection import Outcome, load_predictions, load_registry, read_journal
from cradle_lib.detection.run import run
from cradle_lib.labels import BITS, LABELS

from ..detection.dialogues import make_corpus
from .attack import altered, as_json, attempt, cases, damaged

pytestmark = pytest.mark.hostile


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    surrogate = load_corpus("surrogate")
    chosen = [i for i, dialogue in enumerate(surrogate) if dialogue.mask][:6]
    rows = [
        [("+" if t.continues else t.speaker, t.text, _cell(t.mask)) for t in d.turns]
        for d in (surrogate.dialogues[i] for i in chosen)
    ]
    return make_corpus(rows, "part")


def _cell(mask: int) -> str:
    return "; ".join(label for label in LABELS if mask & BITS[label]) or "none"


def _formats(corpus: Corpus, folder: Path) -> dict[str, bytes]:
    made = {}
    for ending in (".parquet", ".csv"):
        write_release(corpus, folder / f"c{ending}")
        made[ending] = (folder / f"c{ending}").read_bytes()
    frame = pd.read_parquet(folder / "c.parquet")
    made[".json"] = frame.to_json(orient="records").encode()
    made[".jsonl"] = frame.to_json(orient="records", lines=True).encode()
    return made


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".json", ".jsonl"])
def test_a_damaged_corpus(corpus: Corpus, tmp_path: Path, ending: str) -> None:
    content = _formats(corpus, tmp_path)[ending]
    path = tmp_path / f"mutant{ending}"
    for rng in cases(ending):
        path.write_bytes(damaged(content, rng))
        read = attempt(lambda: read_release(path))
        if read is not None:
            assert [t.row for t in read.turns] == list(range(len(read.turns)))
            for dialogue in read:
                assert [t.turn_id for t in dialogue.turns] == list(range(len(dialogue.turns)))
            assert all(0 <= turn.mask < 1 << 16 for turn in read.turns)
            read.to_frame()


def test_a_corpus_of_odd_values(corpus: Corpus, tmp_path: Path) -> None:
    rows = json.loads(_formats(corpus, tmp_path)[".json"])[:12]
    path = tmp_path / "mutant.json"
    for rng in cases("values"):
        path.write_bytes(as_json(altered(rows, rng)))
        attempt(lambda: read_release(path).to_frame())


@pytest.fixture(scope="module")
def journal(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return run(load_registry()["keyword"], corpus, out=tmp_path_factory.mktemp("j")).read_bytes()


def _says(answer: str) -> int:
    """Reads an answer of the keyword baseline again: labels and nothing else."""
    return sum(BITS[name] for name in answer.split("; ") if name != "none")


def test_a_damaged_journal(corpus: Corpus, journal: bytes, tmp_path: Path) -> None:
    _, before = read_journal(_put(tmp_path / "before.jsonl", journal))
    known = {(p.dialogue, p.turn, p.key): p for p in before}
    path = tmp_path / "j.jsonl"
    for rng in cases("journal"):
        path.write_bytes(damaged(journal, rng))
        read = attempt(lambda: read_journal(path))
        for found in read[1] if read is not None else ():
            if found.outcome is Outcome.OK and found.answer == found.answer.strip():
                original = known.get((found.dialogue, found.turn, found.key))
                if original is not None and found.answer == original.answer:
                    assert found.mask == _says(found.answer)
        attempt(lambda: load_predictions(path, corpus, partial=True))


def test_a_journal_of_odd_values(corpus: Corpus, journal: bytes, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in journal.splitlines()]
    path = tmp_path / "j.jsonl"
    for rng in cases("journal values"):
        mutant = list(lines)
        place = rng.randrange(len(lines))
        mutant[place] = altered(lines[place], rng)
        path.write_bytes(b"".join(as_json(line) + b"\n" for line in mutant))
        read = attempt(lambda: load_predictions(path, corpus, partial=True))
        if read is not None:
            read.to_frame()


def test_labels_that_were_edited_are_never_scored(
    corpus: Corpus, journal: bytes, tmp_path: Path
) -> None:
    lines = journal.splitlines(keepends=True)
    path = tmp_path / "j.jsonl"
    for rng in cases("edited labels"):
        place = rng.randrange(1, len(lines))
        line = json.loads(lines[place])
        others = [label for label in ("none", *LABELS) if label != line["labels"]]
        line["labels"] = rng.choice(others)
        path.write_bytes(b"".join([*lines[:place], as_json(line) + b"\n", *lines[place + 1 :]]))
        assert attempt(lambda: read_journal(path)) is None


@pytest.fixture(scope="module")
def annotated(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, list[Any]]:
    study = plan_study(corpus, {"one": ("A", "B"), "two": ("C", "D")}, rounds=1)
    folder = tmp_path_factory.mktemp("study")
    tasks: list[Any] = []
    for path in write_tasks(study, corpus, folder, study.assignments):
        tasks += json.loads(path.read_text())
    for number, task in enumerate(tasks, start=1):
        turns = next(d for d in corpus if d.id == task["data"]["dialogue_id"]).turns
        result = [
            {
                "from_name": "label",
                "to_name": "dialogue",
                "type": "paragraphlabels",
                "value": {
                    "start": str(turn.turn_id),
                    "end": str(turn.turn_id),
                    "text": turn.text,
                    "paragraphlabels": _cell(turn.mask).split("; "),
                },
            }
            for turn in turns
            if turn.mask
        ]
        task |= {"id": number, "annotations": [{"id": number, "task": number, "result": result}]}
    return study, tasks


def test_an_export_of_odd_values(
    corpus: Corpus, annotated: tuple[Study, list[Any]], tmp_path: Path
) -> None:
    study, tasks = annotated
    path = _put(tmp_path / "export.json", as_json(tasks))
    masks = {d.id: tuple(t.mask for t in d.turns) for d in corpus}
    whole = read_exports([path], study, corpus)
    assert all(entry.masks == masks[entry.dialogue] for entry in whole.entries)
    for rng in cases("export"):
        path.write_bytes(as_json(altered(tasks, rng)))
        attempt(lambda: read_exports([path], study, corpus))
        path.write_bytes(damaged(as_json(tasks), rng))
        attempt(lambda: read_exports([path], study, corpus))


def test_annotations_of_two_tasks_that_changed_places(
    corpus: Corpus, annotated: tuple[Study, list[Any]], tmp_path: Path
) -> None:
    study, tasks = annotated
    for rng in cases("changed places"):
        one, other = rng.sample(range(len(tasks)), 2)
        if tasks[one]["data"]["dialogue_id"] == tasks[other]["data"]["dialogue_id"]:
            continue
        mutant = json.loads(as_json(tasks))
        results = [mutant[place]["annotations"][0]["result"] for place in (one, other)]
        for place, result in zip((other, one), results, strict=True):
            mutant[place]["annotations"][0]["result"] = result
        path = _put(tmp_path / "export.json", as_json(mutant))
        assert attempt(lambda p=path: read_exports([p], study, corpus)) is None


def _put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
