"""A corpus of twenty dialogues, a study on it, everybody's annotations, and the command line."""

from __future__ import annotations

import json
import random
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

import pytest

from cradle_extras.label_studio.study import Study, next_assignments, plan_study
from cradle_extras.label_studio.tasks import export_name, task_data
from cradle_lib.annotation.table import Annotation, Annotations
from cradle_lib.cli import main
from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.labels import BITS
from tools.annotations.build import region

Export = list[dict[str, Any]]


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    """Listener and user take turns; the last utterance runs over two rows; text is hostile."""
    chance = random.Random(5)
    dialogues, row = [], 0
    for index in range(20):
        turns = []
        for turn_id in range(8):
            mask = chance.choice([*BITS.values()]) if turn_id % 2 and chance.random() < 0.3 else 0
            speaker = "User" if turn_id % 2 else "Listener"
            text = f'{index}.{turn_id} <b>"hot"</b> & \N{SMILING FACE WITH OPEN MOUTH} é'
            turns.append(Turn(row, turn_id, speaker, text, mask))  # type: ignore[arg-type]
            row += 1
        turns.append(Turn(row, 8, "User", "- and more", 0, continues=True))
        row += 1
        dialogues.append(Dialogue(index, tuple(turns)))
    return Corpus("small", tuple(dialogues))


@pytest.fixture(scope="session")
def finished(corpus: Corpus) -> tuple[Study, Annotations]:
    """A finished study: the second of each team errs now and then, the senior has the gold."""
    study = plan_study(corpus, {"1": ("A", "B"), "2": ("C", "D")}, senior="S", seed=1)
    chance = random.Random(9)
    entries: list[Annotation] = []
    more = study.assignments
    while more:
        for item in more:
            masks = [turn.mask for turn in corpus.by_id[item.dialogue].turns]
            if item.role != "senior" and chance.random() < 0.5:
                masks[chance.choice([1, 3, 5])] ^= chance.choice([*BITS.values()][:4])
            entries.append(
                Annotation(
                    item.dialogue, item.annotator, item.team, item.round, item.role, tuple(masks)
                )
            )
        more = next_assignments(study, Annotations.of(corpus, entries))
        study = study.with_more(more)
    return study, Annotations.of(corpus, entries)


@pytest.fixture(scope="session")
def study(finished: tuple[Study, Annotations]) -> Study:
    return finished[0]


@pytest.fixture(scope="session")
def annotations(finished: tuple[Study, Annotations]) -> Annotations:
    return finished[1]


@pytest.fixture
def exports(
    study: Study, corpus: Corpus, annotations: Annotations
) -> Callable[[], dict[str, Export]]:
    """Makes Label Studio's JSON exports of the finished study, one for each project."""
    by_key = {(entry.dialogue, entry.annotator): entry for entry in annotations.entries}

    def make() -> dict[str, Export]:
        files: dict[str, Export] = {}
        for number, item in enumerate(study.assignments, start=1):
            dialogue = corpus.by_id[item.dialogue]
            masks = by_key[item.dialogue, item.annotator].masks
            annotation = {
                "id": 1000 + number,
                "completed_by": {"id": 7, "email": "someone@example.com"},
                "result": [
                    region(turn.turn_id, mask, turn.text)
                    for turn, mask in zip(dialogue.turns, masks, strict=True)
                    if mask
                ],
                "was_cancelled": False,
            }
            data = task_data(item, study, dialogue)
            task = {"id": number, "annotations": [annotation], "data": data}
            files.setdefault(export_name(item), []).append(task)
        return json.loads(json.dumps(files))  # type: ignore[no-any-return]

    return make


@pytest.fixture
def written(tmp_path: Path) -> Callable[[dict[str, Any]], list[Path]]:
    """Writes exports to files."""

    def write(files: dict[str, Any]) -> list[Path]:
        paths = []
        for name, content in files.items():
            path = tmp_path / f"{name}.json"
            path.write_text(json.dumps(content), encoding="utf-8")
            paths.append(path)
        return paths

    return write


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


Run = Callable[[str, Path], Done]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in a folder, in this process: starting Python anew takes most of the time."""

    def start(command: str, folder: Path) -> Done:
        monkeypatch.chdir(folder)
        words = []
        for word in shlex.split(command)[1:]:
            words += sorted(glob(word)) if "*" in word else [word]
        monkeypatch.setattr(sys, "argv", ["cradle", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        return Done(int(ended.value.code or 0), shown.out, shown.err)

    return start


@pytest.fixture
def ran(run: Run) -> Callable[[str, Path], str]:
    """Runs a command that must succeed, and gives what it printed."""

    def start(command: str, folder: Path) -> str:
        done = run(command, folder)
        assert done.code == 0, f"{command}\n{done.out}{done.err}"
        return done.out

    return start
