"""``cradle annotate``: the commands of the page *Label your own dialogues* are run as printed."""

from __future__ import annotations

import json
import re
import shlex
from contextlib import chdir
from glob import glob
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import Result

from cradle_extras.label_studio.exports import SHIPPED
from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.errors import CorpusError
from tools.annotations.build import region

from ...cli.in_process import invoke
from .page import SEEN, cradle_commands, lines, server_command, votes


def run(command: str, folder: Path) -> Result:
    """Runs a command of the page in a folder."""
    with chdir(folder):
        words = shlex.split(command)[1:]
        return invoke(*(name for word in words for name in (sorted(glob(word)) or [word])))


def run_command(command: str, folder: Path) -> str:
    """Runs a command that must succeed and returns its output."""
    done = run(command, folder)
    assert done.exit_code == 0, f"{command}\n{done.output}{done.exception}"
    return done.output


def error_of(command: str, folder: Path) -> str:
    """Runs a command that must be refused and returns the message."""
    done = run(command, folder)
    assert isinstance(done.exception, CorpusError), done.output
    return str(done.exception)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with twelve dialogues, one per file."""
    dialogues = tmp_path / "my-dialogues"
    dialogues.mkdir()
    for number in range(12):
        (dialogues / f"talk-{number:02d}.txt").write_text(
            f"Listener: How has week {number} been?\n\nUser: Loud.\n- very\n"
            "Listener: I see.\nUser: My partner keeps my money.\nListener: Thank you.\n",
            encoding="utf-8",
        )
    return tmp_path


def label(folder: Path) -> list[str]:
    """Labels all tasks without an export, as annotators in Label Studio would."""
    (folder / "exports").mkdir(exist_ok=True)
    done = []
    for path in sorted((folder / "study" / "tasks").glob("*.json")):
        target = folder / "exports" / path.name
        if target.exists():
            continue
        tasks: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        for task in tasks:
            turns = task["data"]["turns"]
            masks = votes(path.stem, task["data"]["dialogue_id"]).items()
            result = [region(turn, mask, turns[turn]["text"]) for turn, mask in masks]
            task["annotations"] = [{"result": result}]
        target.write_text(json.dumps(tasks), encoding="utf-8")
        done.append(path.stem)
    return done


def test_the_commands_of_the_page_make_gold_labels_from_a_folder(folder: Path) -> None:
    convert, export, read_first, agreement, read, second, after, adjudicate, infer, *_ = (
        cradle_commands()
    )
    assert "24 by User" in run_command(convert, folder)
    collected = load_corpus(folder / "my-dialogues.parquet")
    assert [dialogue.id for dialogue in collected][:2] == ["talk-00", "talk-01"]
    run_command(export, folder)
    assert "study/study.json exists: a study is planned once" in error_of(export, folder)
    assert label(folder) == [f"round{n}-{name}" for n in (1, 2) for name in "ABCD"]
    assert "12 annotations: study/annotations.parquet" in run_command(read_first, folder)
    shown = run_command(agreement, folder)
    assert "team 2, round" in shown
    assert "labelled" in shown
    assert "24 annotations: study/annotations.parquet" in run_command(read, folder)
    assert second == agreement
    shown = run_command(f"{second} --units user", folder)
    assert "all user turns" in shown
    assert "confirm_DV_ongoing" in shown
    found = json.loads(run_command(f"{second} --units user --json --draws 20", folder))
    # JSON has no NaN.
    wanted = {"team": "1", "round": 1, "label": "confirm_RA_past", "measure": "kappa"}
    [row] = [row for row in found if wanted.items() <= row.items()]
    assert [row[name] for name in ("value", "low", "high")] == [None] * 3

    assert "nobody has adjudicated" in error_of(adjudicate, folder)
    assert not (folder / "gold.parquet").exists()

    run_command(after, folder)
    assert {name.split("-")[0] for name in label(folder)} == {"adjudicator"}
    run_command(read, folder)
    run_command(after, folder)
    assert label(folder) == ["senior-S"]
    run_command(read, folder)
    assert "No dialogue is left" in run_command(after, folder)

    ended = run_command(adjudicate, folder)
    assert "exact agreement" in ended
    assert "audit.csv" in ended
    gold = load_corpus(folder / "gold.parquet")
    assert gold.dialogues[0].turns[1].text == "Loud.\n- very"
    assert [[t.mask for t in d.turns] for d in gold] == [
        [0, SEEN[1], 0, SEEN[3], 0] for _ in range(12)
    ]
    audit = (folder / "audit.csv").read_text(encoding="utf-8").splitlines()
    assert audit[0] == "dialogue,turn_id,label,result,by,voters,outcome"
    assert any(",gold,senior,A S," in line or ",gold,senior,C S," in line for line in audit)
    assert "Journal:" in run_command(f"{infer} --out runs", folder)


def test_the_page_installs_and_starts_the_tested_label_studio() -> None:
    makefile = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
    (install,) = (line for line in lines() if "pip install" in line)
    version = install.rpartition("==")[2]
    lock = (paths.ROOT / "tests/extras/label_studio/label-studio.lock").read_text(encoding="utf-8")
    assert f"-c tests/extras/label_studio/label-studio.lock label-studio=={version}" in install
    assert f"label-studio.lock label-studio=={version}\n" in makefile
    assert f"\nlabel-studio=={version}\n" in lock
    environment, arguments = server_command()
    # Label Studio sends error reports to its makers unless both addresses are empty.
    assert environment == {
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
    }
    assert arguments[arguments.index("--internal-host") + 1] == "127.0.0.1"


def test_the_shipped_study_can_be_imported_and_adjudicated(tmp_path: Path) -> None:
    commands = [command.replace("runs/", f"{tmp_path}/") for command in cradle_commands()[-4:]]
    read, _, decided, checked = (run_command(command, paths.ROOT) for command in commands)
    table = pd.read_parquet(SHIPPED / "annotations.parquet")
    number = len(table[["dialogue", "annotator"]].drop_duplicates())
    assert f"{number:,} annotations" in read
    # The senior had nothing to decide.
    assert re.search(r"turn conflict +0", decided)
    assert "Dialogues by timing: early 200, late 200, mid 200." in checked


def test_file_extensions_are_checked_first(tmp_path: Path) -> None:
    # The table does not exist, but the extension is checked before.
    command = ".venv/bin/cradle annotate adjudicate none.csv --out gold.txt"
    assert "gold.txt: unknown ending" in error_of(command, tmp_path)
