from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cradle_lib.cli import main

Cradle = Callable[..., "subprocess.CompletedProcess[str]"]
DIALOGUE = "0,User: I have been hurting myself again.,confirm_SH_ongoing\n1,User: Hi.,none\n"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A corpus of three equal dialogues."""
    path = tmp_path / "tiny.csv"
    path.write_text("turn_id,text,labels\n" + 3 * DIALOGUE, encoding="utf-8")
    return path


@pytest.fixture
def cradle(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cradle:
    """A function that runs the whole program in this process, where warnings are errors."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["cradle", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = int(ended.value.code or 0)
        return subprocess.CompletedProcess(words, code, captured.out, captured.err)

    return run
