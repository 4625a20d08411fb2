"""The core without ``cradle_extras``, and commands of the extras without their packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cradle_lib import paths

# Runs the command line as if some packages were not installed: for Python, `None` in `sys.modules`
# is a package that can't be found.
PROGRAM = """
import sys
for name in sys.argv.pop(1).split(","):
    sys.modules[name] = None
from cradle_lib.cli import main
main()
"""
JOURNAL = paths.DATA / "runs" / "surrogate-test" / "smollm2-135m-tuned.jsonl"
TRAIN = ["train", "--base", "smollm2-135m", "--out", "made", "--recipe", "processor"]
CLUSTER = ["cluster", "slurm", "--shards", "2", "--model", "keyword", "--out", "made"]


def python(code: str, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(paths.ROOT), "COLUMNS": "500", "MPLBACKEND": "agg"},
    )


def test_the_core_scores_and_lists_its_commands_without_the_extras(tmp_path: Path) -> None:
    scored = python(
        PROGRAM, "cradle_extras", "score", str(JOURNAL), "--draws", "0", folder=tmp_path
    )
    assert scored.returncode == 0, scored.stderr
    alone = python(PROGRAM, "cradle_extras", "--help", folder=tmp_path)
    assert "score" in alone.stdout
    assert "Label, write and train" not in alone.stdout


def test_no_module_of_the_core_needs_the_extras(tmp_path: Path) -> None:
    modules = [
        ".".join(path.relative_to(paths.ROOT).with_suffix("").parts)
        for path in sorted((paths.ROOT / "cradle_lib").rglob("*.py"))
        if path.name != "__main__.py"
    ]
    code = (
        "import sys, importlib; sys.modules['cradle_extras'] = None; import cradle_lib\n"
        "[getattr(cradle_lib, name) for name in cradle_lib.__all__]\n"
        "[importlib.import_module(name) for name in sys.argv[1:]]"
    )
    done = python(code, *modules, folder=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("without", "words", "problem"),
    [
        ("cradle_extras", ["bundle", "a.jsonl"], "No such command 'bundle'"),
        ("cradle_extras", ["score", "a.zip", "b.zip"], "the optional part 'bundle'"),
        ("peft", TRAIN, f"package peft, {paths.install_command('train')}"),
        ("torch", TRAIN, f"package torch, {paths.install_command('local')}"),
        ("submitit", CLUSTER, f"package submitit, {paths.install_command('cluster')}"),
    ],
    ids=["command", "part", "peft", "torch", "submitit"],
)
def test_a_command_without_its_package_says_what_to_install(
    without: str, words: list[str], problem: str, tmp_path: Path
) -> None:
    done = python(PROGRAM, without, *words, folder=tmp_path)
    assert done.returncode == 2, done.stderr
    package, _, command = problem.partition(", ")
    assert package in done.stderr
    assert command in done.stderr
    assert "Traceback" not in done.stderr
