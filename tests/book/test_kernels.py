"""Forked kernels know the imports, share nothing else, and are gone when they are shut down."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

from cradle_lib import paths
from cradle_lib.book.notebooks.kernels import CAN_FORK, kernel_spec
from cradle_lib.detection import load_registry

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="this system has no fork")

ASKED = """
import json, os, sys
before = "pandas" in sys.modules and "seaborn" in sys.modules
import cradle_lib
seen = getattr(cradle_lib, "left_behind", None)
cradle_lib.left_behind = os.getpid()
predictions = sys.modules["cradle_lib.detection.predictions"]
facts = {"before": before, "seen": seen, "pid": os.getpid(), "cwd": os.getcwd()}
facts["runs"] = len(predictions._READ)
print(json.dumps(facts | {"env": os.environ["WORD"], "parent": os.getppid()}))
"""


def ask(folder: Path, word: str, *, reads_runs: bool = False) -> dict[str, Any]:
    manager = KernelManager()
    manager._kernel_spec = kernel_spec(forked=True, reads_runs=reads_runs)
    manager.start_kernel(cwd=str(folder), env=os.environ | {"WORD": word})
    client = manager.client()
    client.start_channels()
    told: list[str] = []
    try:
        client.wait_for_ready(timeout=120)
        client.execute_interactive(
            ASKED, timeout=120, output_hook=lambda m: told.append(m["content"].get("text", ""))
        )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    facts: dict[str, Any] = json.loads("".join(told))
    return facts


def test_two_kernels_know_the_imports_and_share_nothing_else(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    one, two = (ask(folder, folder.name) for folder in folders)
    assert one["before"]
    assert two["before"]
    assert one["seen"] is two["seen"] is None
    assert one["pid"] != two["pid"]
    assert [Path(facts["cwd"]) for facts in (one, two)] == [f.resolve() for f in folders]
    assert [facts["env"] for facts in (one, two)] == ["one", "two"]
    # Forked from one process, which is not this one.
    assert one["parent"] == two["parent"] != os.getpid()
    for facts in (one, two):
        with pytest.raises(ProcessLookupError):
            os.kill(facts["pid"], 0)


def test_a_kernel_that_reads_runs_begins_with_them(tmp_path: Path) -> None:
    assert ask(tmp_path, "no run")["runs"] == 0
    folder = paths.SHIPPED_RUNS / "surrogate-test"
    shipped = [e for e in load_registry().default if (folder / f"{e.id}.jsonl").is_file()]
    assert shipped
    assert ask(tmp_path, "runs", reads_runs=True)["runs"] >= len(shipped)
