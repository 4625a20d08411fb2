"""``cradle annotate``: the commands of the page *Label your own dialogues*, as they are printed."""

from __future__ import annotations

import json
import shlex
from contextlib import chdir
from glob import glob
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from cradle_extras.label_studio.text_folder import read_folder
from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.errors import CorpusError
from tools.annotations.build import region

from ...cli.in_process import invoke
from .page import SEEN, lines, printed, serving, votes


def run(command: str, folder: Path) -> Result:
    """Runs a command of the page in a folder."""
    with chdir(folder):
        words = shlex.split(command)[1:]
        return invoke(*(name for word in words for name in (sorted(glob(word)) or [word])))


def ran(command: str, folder: Path) -> str:
    """Runs a command that must succeed, and gives what it printed."""
    done = run(command, folder)
    assert done.exit_code == 0, f"{command}\n{done.output}{done.exception}"
    return done.output


def refused(command: str, folder: Path) -> str:
    """Runs a command that must be refused, and gives the message."""
    done = run(command, folder)
    assert isinstance(done.exception, CorpusError), done.output
    return str(done.exception)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with twelve dialogues, one in each file."""
    dialogues = tmp_path / "my-dialogues"
    dialogues.mkdir()
    for number in range(12):
        (dialogues / f"talk-{number:02d}.txt").write_text(
            f"Listener: How has week {number} been?\n\nUser: Loud.\n- very\n"
            "User: My partner keeps my money.\nListener: Thank you.\n",
            encoding="utf-8",
        )
    return tmp_path


def label(folder: Path) -> list[str]:
    """Does what people do in Label Studio: labels all tasks that have not been exported yet."""
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


def test_the_page_leads_from_a_folder_to_gold(folder: Path) -> None:
    collect, export, read_first, agreement, read, by_user_turns, after, adjudicate, infer, *_ = (
        printed()
    )
    assert "12 dialogues, 60 turns" in ran(collect, folder)
    ran(export, folder)
    assert "study/study.json exists: a study is planned once" in refused(export, folder)
    assert label(folder) == [f"round{n}-{name}" for n in (1, 2) for name in "ABCD"]
    assert "12 annotations: study/annotations.parquet" in ran(read_first, folder)
    shown = ran(agreement, folder)
    assert "team 2, round" in shown
    assert "labelled" in shown
    assert "24 annotations: study/annotations.parquet" in ran(read, folder)
    shown = ran(by_user_turns, folder)
    assert "all user turns" in shown
    assert "confirm_DV_ongoing" in shown
    found = json.loads(ran(f"{by_user_turns} --json --draws 20", folder))
    # JSON has no NaN.
    wanted = {"team": "1", "round": 1, "label": "confirm_RA_past", "measure": "kappa"}
    [row] = [row for row in found if wanted.items() <= row.items()]
    assert [row[name] for name in ("value", "low", "high")] == [None] * 3

    assert "nobody has adjudicated" in refused(adjudicate, folder)
    assert not (folder / "gold.parquet").exists()

    ran(after, folder)
    assert {name.split("-")[0] for name in label(folder)} == {"adjudicator"}
    ran(read, folder)
    ran(after, folder)
    assert label(folder) == ["senior-S"]
    ran(read, folder)
    assert "No dialogue is left" in ran(after, folder)

    ended = ran(adjudicate, folder)
    assert "exact agreement" in ended
    assert "audit.csv" in ended
    gold = load_corpus(folder / "gold.parquet")
    assert [[t.mask for t in d.turns] for d in gold] == [
        [0, SEEN[1], 0, SEEN[3], 0] for _ in range(12)
    ]
    audit = (folder / "audit.csv").read_text(encoding="utf-8").splitlines()
    assert audit[0] == "dialogue,turn_id,label,result,by,voters,outcome"
    assert any(",gold,senior,A S," in line or ",gold,senior,C S," in line for line in audit)
    assert "Journal:" in ran(f"{infer} --out runs", folder)


def test_the_page_installs_and_starts_the_label_studio_that_is_tested() -> None:
    makefile = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
    (install,) = (line for line in lines() if "pip install" in line)
    version = install.rpartition("==")[2]
    lock = (paths.ROOT / "tests/extras/label_studio/label-studio.lock").read_text(encoding="utf-8")
    assert f"-c tests/extras/label_studio/label-studio.lock label-studio=={version}" in install
    assert f"label-studio.lock label-studio=={version}\n" in makefile
    assert f"\nlabel-studio=={version}\n" in lock
    environment, arguments = serving()
    # Its reports of errors go to its makers unless both addresses are empty.
    assert environment == {
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
    }
    assert arguments[arguments.index("--internal-host") + 1] == "127.0.0.1"


def test_the_surrogates_study_ends_in_its_own_gold(tmp_path: Path) -> None:
    commands = [command.replace("runs/", f"{tmp_path}/") for command in printed()[-4:]]
    read, _, _, checked = (ran(command, paths.ROOT) for command in commands)
    assert "1,622 annotations" in read
    assert "more departures from the protocol" in read
    assert "All counts are those of the published test split." in checked


def test_endings_are_checked_before_any_work(tmp_path: Path) -> None:
    # The table is missing, too.
    command = ".venv/bin/cradle annotate adjudicate none.csv --out gold.txt"
    assert "gold.txt: unknown ending" in refused(command, tmp_path)


def test_a_folder_is_read_and_a_line_without_a_speaker_is_named(folder: Path) -> None:
    corpus = read_folder(folder / "my-dialogues")
    assert [d.id for d in corpus][:2] == ["d0000", "d0001"]
    assert [(t.speaker, t.continues) for t in corpus.dialogues[0].turns] == [
        ("Listener", False), ("User", False), ("User", True), ("User", False), ("Listener", False),
    ]  # fmt: skip
    bad = folder / "my-dialogues" / "talk-03.txt"
    for content, message in {
        "Hello there\n": r"talk-03\.txt:1: .*names no speaker",
        "\n": r"talk-03\.txt: there are no rows",
    }.items():
        bad.write_text(content, encoding="utf-8")
        with pytest.raises(CorpusError, match=message):
            read_folder(folder / "my-dialogues")
