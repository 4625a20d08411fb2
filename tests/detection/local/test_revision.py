"""Weights from the Hub: a record names the commit that was loaded, not what was asked for.

The Hub's cache is laid out on this disk as its client lays it out, and the command line runs in
a process that may not use a network.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cradle_lib import paths
from cradle_lib.detection import read_journal
from cradle_lib.detection.local.revision import hub_commit, unloadable
from cradle_lib.errors import EngineError

from ..local.tiny_models import make_model, make_weights

OLD, NEW = "0" * 39 + "a", "0" * 39 + "b"
PROMPT = "Label.\n{history}\n{current_turn}\n"
ROWS = "turn_id,text,labels\n0,User: Hello.,none\n1,Listener: Hi.,none\n2,User: A good day.,none\n"
COMMAND = """
import sys
from pathlib import Path
from cradle_lib import paths
here = Path(sys.argv.pop(1))
paths.REGISTRY, paths.PROMPTS = here / "models.yml", here / "prompts"
from cradle_lib.cli import main
main()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with two commits of one repository, of which ``main`` is the newer."""
    place = tmp_path_factory.mktemp("place")
    repository = place / "hub" / "models--lab--tiny"
    (repository / "refs").mkdir(parents=True)
    weights = make_weights(place / "weights")
    for commit in (OLD, NEW):
        blobs = repository / "blobs"
        blobs.mkdir(exist_ok=True)
        (repository / "snapshots" / commit).mkdir(parents=True)
        for file in weights.iterdir():
            blob = blobs / f"{commit[-1]}-{file.name}"
            shutil.copyfile(file, blob)
            (repository / "snapshots" / commit / file.name).symlink_to(
                Path("../../blobs") / blob.name
            )
    (repository / "refs" / "main").write_text(NEW)
    (repository / "refs" / "v1").write_text(OLD)
    (place / "prompts").mkdir()
    (place / "prompts" / "short.txt").write_text(PROMPT)
    (place / "talk.csv").write_text(ROWS)
    entry = {
        "name": "Tiny",
        "group": "open",
        "weights": "lab/tiny",
        "prompt": "short",
        "decoding": {"max_new_tokens": 4, "dtype": "float32"},
    }
    models = {
        "newest": {**entry, "engine": "wave"},
        "tagged": {**entry, "engine": "reference", "revision": "v1"},
        "unknown": {**entry, "engine": "wave", "revision": "v2"},
        "absent": {**entry, "engine": "reference", "weights": "lab/absent"},
    }
    (place / "models.yml").write_text(yaml.safe_dump(models))
    return place


def infer(place: Path, model: str) -> tuple[int, str]:
    """Runs ``cradle infer`` as somebody at a terminal; gives what the terminal saw."""
    ours, theirs = pty.openpty()
    arguments = ("infer", "--model", model, "--corpus", place / "talk.csv", "--out", place / "runs")
    done = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *map(str, (place, *arguments))],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=paths.ROOT,
        env={
            "PATH": "/usr/bin:/bin",
            "TERM": "xterm",
            "COLUMNS": "100",
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "HF_HUB_CACHE": str(place / "hub"),
        },
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # What Linux says when the other side has closed.
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    return done.wait(), shown


def test_the_record_holds_the_commit_of_main_and_the_bar_says_how_it_goes(place: Path) -> None:
    code, shown = infer(place, "newest")
    # A model with random weights writes nothing that can be read.
    assert code == 1, shown
    assert "2 user turns: 0 ok, 2 unparsed, 0 refused, 0 failed." in shown
    assert "No answer could be read" in shown
    assert "answer_after" in shown
    record, predictions = read_journal(place / "runs" / "talk" / "newest.jsonl")
    assert record.revision == NEW
    assert record.weights == "lab/tiny"
    assert len(predictions) == 2
    asked = sum(p.tokens_in or 0 for p in predictions)
    reused = sum(p.tokens_cached or 0 for p in predictions)
    assert 0 < reused < asked
    last = shown[: shown.rindex("Journal:")]
    assert "2/2" in last
    assert re.search(rf"\d turns/s {100 * reused // asked} % reused 0:00:00", last)


def test_a_run_goes_on_with_its_commit_when_the_branch_has_moved(place: Path) -> None:
    journal = place / "runs" / "talk" / "newest.jsonl"
    assert infer(place, "newest")[0] == 1
    whole = journal.read_bytes()
    # As killed before its last answer was written.
    journal.write_bytes(whole[: whole.rstrip().rfind(b"\n") + 1])
    main = place / "hub" / "models--lab--tiny" / "refs" / "main"
    main.write_text(OLD)
    try:
        code, shown = infer(place, "newest")
    finally:
        main.write_text(NEW)
    assert code == 1, shown
    record, predictions = read_journal(journal)
    assert (record.revision, len(predictions)) == (NEW, 2)


def test_a_tag_is_recorded_as_the_commit_that_it_stands_for(place: Path) -> None:
    code, shown = infer(place, "tagged")
    assert code == 1, shown
    assert read_journal(place / "runs" / "talk" / "tagged.jsonl")[0].revision == OLD


@pytest.mark.parametrize(("model", "named"), [("unknown", "lab/tiny"), ("absent", "lab/absent")])
def test_what_can_not_be_found_is_one_clear_line_and_no_journal(
    place: Path, model: str, named: str
) -> None:
    code, shown = infer(place, model)
    assert code == 2
    assert f"the weights of Tiny ({named}) can't be loaded" in " ".join(shown.split())
    assert "Traceback" not in shown
    assert not (place / "runs" / "talk" / f"{model}.jsonl").exists()


def test_a_commit_is_taken_at_its_word_and_a_folder_has_none(tmp_path: Path) -> None:
    pinned = make_model(Path("lab/tiny")).model_copy(update={"revision": OLD})
    assert hub_commit(pinned) == OLD
    assert hub_commit(make_model(tmp_path)) is None
    with pytest.raises(EngineError, match=r"there is no folder .*gone") as error:
        hub_commit(make_model(tmp_path / "gone"))
    assert "download" not in str(error.value)
    embedded = make_model(tmp_path).model_copy(update={"weights": "embedded:SmolLM2"})
    assert hub_commit(embedded) is None


def test_a_folder_that_can_not_be_loaded_is_not_to_be_downloaded(tmp_path: Path) -> None:
    said = str(unloadable(make_model(tmp_path), str(tmp_path), ValueError("one of: .")))
    assert said.endswith(
        "loaded: one of. The folder needs config.json, safetensors and a tokenizer."
    )
    assert "`hf download lab/tiny`" in str(unloadable(make_model(tmp_path), "lab/tiny", OSError()))


def test_a_file_outside_a_snapshot_is_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *_, **__: "/tmp/config.json")
    with pytest.raises(EngineError, match="not named after a commit"):
        hub_commit(make_model(Path("lab/odd")))
