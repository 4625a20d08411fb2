"""One task: a command of this library, run somewhere else, and how it ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cradle_lib.files import replacing

_LINES: Final = 20


@dataclass(frozen=True, slots=True)
class Task:
    """A command, without ``cradle``, to be run somewhere else; messages call it by its name.

    Its environment names the variables that it finds otherwise than here; ``None`` for one that is
    not set. After the words of its launcher, such as ``accelerate launch``, the command's module is
    named; without a launcher it is run by Python.
    """

    name: str
    words: tuple[str, ...]
    environment: Mapping[str, str | None] = field(default_factory=dict)
    launcher: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class End:
    """How a task ended by itself: its exit status, and the line in which it said why."""

    status: int
    said: str


def perform(task: Task, end: Path) -> None:
    """Runs a task's command where the task is, and notes its end in a file.

    A task that is killed notes nothing, by which it is known.
    """
    command = [*(task.launcher or (sys.executable,)), "-m", "cradle_lib.cli", *task.words]
    last: deque[str] = deque(maxlen=_LINES)
    changed = {**os.environ, **task.environment}
    surroundings = {name: value for name, value in changed.items() if value is not None}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, errors="replace", env=surroundings
    ) as process:
        try:
            for line in process.stderr or ():
                sys.stderr.write(line)
                last.append(line.strip())
            status = process.wait()
        except BaseException:
            process.kill()
            raise
    if status < 0:
        raise SystemExit(128 - status)
    told = [line.removeprefix("error:").strip() for line in last if line.startswith("error:")]
    # The last line of words: below some errors there is the edge of a box.
    said = (told or [line for line in last if any(map(str.isalnum, line))] or [""])[-1]
    with replacing(end) as part:
        part.write_text(json.dumps({"status": status, "said": said[:1000]}))


def read_end(path: Path) -> End | None:
    """Reads the note of a task's end; ``None`` if there is none, or it is not whole."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return End(int(content["status"]), str(content["said"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
