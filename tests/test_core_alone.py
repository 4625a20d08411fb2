"""The core without ``cradle_extras``, and commands whose packages are missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cradle_lib import paths

# Runs commands as if some packages were not installed: importing a name that is `None` in
# `sys.modules` raises ModuleNotFoundError.
PROGRAM = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None
from cradle_lib.cli import main
for line in sys.argv[2:]:
    sys.argv = ["cradle", *line.split()]
    try:
        main()
    except SystemExit as ended:
        print("exit", ended.code or 0, file=sys.stderr)
"""
JOURNAL = paths.DATA / "runs" / "surrogate-test" / "smollm2-135m-tuned-constrained.jsonl"
TRAIN = "train --base smollm2-135m --out made --recipe processor"
CLUSTER = "cluster slurm --shards 2 --model keyword --out made"


def run(without: str, *lines: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, without, *lines],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(paths.ROOT), "COLUMNS": "500"},
    )


def test_the_core_works_without_the_extras_and_names_what_is_missing(tmp_path: Path) -> None:
    lines = (f"score {JOURNAL} --draws 0", "--help", "bundle a.jsonl", "score a.zip b.zip")
    done = run("cradle_extras", *lines, folder=tmp_path)
    assert "SmolLM2-135M, tuned, constrained on surrogate-test" in done.stdout
    assert "Label, write and train" not in done.stdout
    scored, helped, bundled, both, _ = done.stderr.split("exit ")
    assert scored == ""
    assert helped == "0\n"
    assert "No such command 'bundle'" in bundled
    assert "the optional part 'bundle'" in both
    assert done.stderr.count("exit 2") == 2


def test_a_command_without_its_package_says_what_to_install(tmp_path: Path) -> None:
    done = run("peft,submitit,matplotlib", TRAIN, CLUSTER, "annotate export", folder=tmp_path)
    for problem in (
        f"package peft, {paths.install_command('train')}",
        f"package submitit, {paths.install_command('cluster')}",
        f"package matplotlib, {paths.install_command('book')}",
    ):
        package, _, command = problem.partition(", ")
        assert package in done.stderr
        assert command in done.stderr
    assert done.stderr.count("exit 2") == 3
    assert "Traceback" not in done.stderr
