"""Outputs and checkpoints of notebooks are kept out of git."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml

from cradle_lib import paths


def strip(*files: Path) -> None:
    """Runs the hook for notebooks as pre-commit would."""
    config = yaml.safe_load((paths.ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    [hook] = [h for h in config["repos"][0]["hooks"] if h.get("types") == ["jupyter"]]
    program, *options = hook["entry"].split()
    # Uses the program of the environment that runs the tests.
    program = str(Path(sys.executable).parent / Path(program).name)
    subprocess.run([program, *options, *map(str, files)], cwd=paths.ROOT, check=True)


def test_the_hook_removes_only_outputs(tmp_path: Path) -> None:
    source = paths.NOTEBOOKS / "runs.ipynb"
    notebook = nbformat.read(source, as_version=4)
    output = nbformat.v4.new_output("stream", text="User: a line of a dialogue")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code):
        cell.outputs, cell.execution_count = [output], number + 1
    nbformat.write(notebook, tmp_path / "ran.ipynb")
    assert "a line of a dialogue" in (tmp_path / "ran.ipynb").read_text(encoding="utf-8")

    strip(tmp_path / "ran.ipynb")

    assert (tmp_path / "ran.ipynb").read_bytes() == source.read_bytes()


@pytest.mark.parametrize(
    "name",
    [
        "notebooks/.ipynb_checkpoints/runs-checkpoint.ipynb",
        # Defaults of commands that write dialogues, or answers that may quote them.
        "corpus.csv",
        "data/release/test.parquet",
        "data/release/.hub/blobs/0",
        "runs/hub-test/keyword.jsonl",
        "runs/hub-test/.keyword.cluster/0.log",
        "keyword.hub-test.zip",
        "logs/keyword.eval",
        "logs/2026-01-01_cradle-dialogue.json",
        "notebooks/logs/keyword.eval",
        "study/study.json",
        "study/tasks/round-1.team-1.json",
        "study/annotations.parquet",
        "book/sections/explore.ipynb",
        "book/_build/html/sections/explore.html",
        # Made by commands of the guides, or a user's transcripts.
        "gold.parquet",
        "audit.csv",
        "book/_build/my-model.ipynb",
        "any-folder/journal.jsonl",
        "any-folder/corpus.parquet",
        "any-folder/plans.csv",
        "any-folder/keyword.eval",
        "weights/mine/checkpoint-50/trainer_state.json",
        "my-dialogues/talk.txt",
        "any-folder/talk.txt",
    ],
)
def test_git_ignores_what_must_not_be_committed(name: str) -> None:
    done = subprocess.run(["git", "check-ignore", "--quiet", name], cwd=paths.ROOT, check=False)
    assert done.returncode == 0
