"""The core without ``cradle_extras``, and commands of the extras without their packages."""

from __future__ import annotations

import json
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


def cradle(without: str, *words: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs ``cradle`` in a process of its own without some packages, named with commas between."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, without, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(paths.ROOT), "COLUMNS": "500"},
    )


def test_the_help_lists_the_commands_that_can_run(tmp_path: Path) -> None:
    alone = cradle("cradle_extras", "--help", folder=tmp_path)
    assert alone.returncode == 0, alone.stderr
    assert "score" in alone.stdout
    assert "Label, write and train" not in alone.stdout
    everything = cradle("no_such_package", "--help", folder=tmp_path)
    assert "Label, write and train" in everything.stdout


def test_a_shipped_run_is_scored_without_the_extras(tmp_path: Path) -> None:
    words = ("score", JOURNAL, "--draws", "0", "--json")
    alone = cradle("cradle_extras", *words, folder=tmp_path)
    assert alone.returncode == 0, alone.stderr
    everything = cradle("no_such_package", *words, folder=tmp_path)
    assert json.loads(alone.stdout) == json.loads(everything.stdout)


def test_no_module_of_the_core_needs_the_extras() -> None:
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
    done = subprocess.run(
        [sys.executable, "-c", code, *modules],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(paths.ROOT), "MPLBACKEND": "agg"},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("without", "words", "problem"),
    [
        ("cradle_extras", ["train", "--base", "x"], "No such command 'train'"),
        ("cradle_extras", ["bundle", "a.jsonl"], "No such command 'bundle'"),
        ("cradle_extras", ["score", "a.zip", "b.zip"], "the optional part 'bundle'"),
    ],
)
def test_a_command_of_absent_extras_is_refused(
    without: str, words: list[str], problem: str, tmp_path: Path
) -> None:
    done = cradle(without, *words, folder=tmp_path)
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


TRAIN = ["train", "--base", "smollm2-135m", "--out", "made", "--recipe", "processor"]


@pytest.mark.parametrize(
    ("package", "words", "extra"),
    [
        ("trl", TRAIN, "train"),
        ("peft", TRAIN, "train"),
        ("torch", TRAIN, "local"),
        ("inspect_ai", ["export", "inspect", str(JOURNAL)], "inspect"),
        (
            "submitit",
            ["cluster", "slurm", "--shards", "2", "--model", "keyword", "--out", "made"],
            "cluster",
        ),
    ],
)
def test_a_command_without_its_package_says_what_to_install(
    package: str, words: list[str], extra: str, tmp_path: Path
) -> None:
    done = cradle(package, *words, folder=tmp_path)
    assert done.returncode == 2, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert f"package {package.replace('_', '-')}, which is not installed" in line
    assert paths.install_command(extra) in line
    assert "Traceback" not in done.stderr
