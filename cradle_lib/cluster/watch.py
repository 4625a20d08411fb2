"""Leads tasks to their end: submits, looks after them, submits again what died."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from cradle_lib import paths
from cradle_lib.cluster.places import RUNNING, WAITING, Place
from cradle_lib.cluster.task import End, Task, read_end
from cradle_lib.errors import ClusterError
from cradle_lib.files import replacing

#: How often in a row a task may die without having got further.
TRIES: Final = 3
# Looks for which the note of an end is awaited.
_LATE: Final = 6
# Bytes below which a file system counts as full.
_FULL: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Standing:
    """How the tasks stand: how many run, wait for a place, were submitted again, were given up."""

    running: int
    waiting: int
    repeated: int
    failed: int

    def __str__(self) -> str:
        """Says it in a few words, zeros left out."""
        counts = {
            "running": self.running,
            "waiting": self.waiting,
            "submitted again": self.repeated,
            "failed": self.failed,
        }
        return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def lead(
    tasks: Sequence[Task],
    place: Place,
    folder: Path,
    *,
    further: Callable[[int], int],
    report: Callable[[Standing], None] = lambda _: None,
    notice: Callable[[str], None] = lambda _: None,
    pause: Callable[[float], None] = time.sleep,
) -> list[End]:
    """Runs tasks until each has ended by itself, or has died too often.

    Tasks that a start before this one left in the queue are taken up. What tasks do must be theirs
    to go on with when they are started again. The folder, for notes and logs, is removed when all
    went well. ``further`` says how far a task, by its number, has come: a count that grows;
    ``report`` is called after every look, and ``notice`` about each task that died.

    Returns:
        How each ended. An exit status of 2 or more is no success: see :func:`failures`.

    Raises:
        ClusterError: If tasks can't be submitted or watched, or another process leads them.
        KeyboardInterrupt: After Ctrl-C, when the tasks have been ended.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "lock", timeout=0):
            leader = _Leader(tasks, place, folder, further, notice)
            try:
                leader.begin()
                seconds = 0.2
                while leader.open:
                    report(leader.standing)
                    pause(seconds)
                    # Soon at first, so that short tasks are over soon; seldom later.
                    seconds = min(1.3 * seconds, place.slowest)
                    leader.look()
                place.settle()
                report(leader.standing)
            except ClusterError:
                # Whoever runs goes on, and is taken up by the next start.
                raise
            except BaseException:
                place.cancel(list(leader.ids.values()))
                raise
            ends = [leader.ends[number] for number in range(len(tasks))]
            if not any(end.status > 1 for end in ends):
                shutil.rmtree(folder, ignore_errors=True)
            return ends
    except Timeout:
        raise ClusterError(
            f"{paths.shown(folder)}: another process leads these tasks. Wait for it to end."
        ) from None


def failures(tasks: Sequence[Task], ends: Sequence[End], folder: Path) -> list[str]:
    """Says in one line each what became of tasks that did not end well."""
    told: dict[str, list[str]] = {}
    for task, end in zip(tasks, ends, strict=True):
        if end.status > 1:
            told.setdefault(end.said or f"exit status {end.status}", []).append(task.name)
    logs = f"Logs: {paths.shown(folder)}"
    return [f"{', '.join(names)}: {said} ({logs})" for said, names in told.items()]


class _Leader:
    """Keeps count of the tasks of one start."""

    def __init__(
        self,
        tasks: Sequence[Task],
        place: Place,
        folder: Path,
        further: Callable[[int], int],
        notice: Callable[[str], None],
    ) -> None:
        self._tasks, self._place, self._folder = tasks, place, folder
        self._further, self._notice = further, notice
        self._tries, self._late = [0] * len(tasks), [0] * len(tasks)
        self._come = [further(number) for number in range(len(tasks))]
        self._states: Mapping[str, str] = {}
        self._repeated = 0
        self.open = set(range(len(tasks)))
        self.ids: dict[int, str] = {}
        self.ends: dict[int, End] = {}

    @property
    def standing(self) -> Standing:
        states = [self._states.get(self.ids[number], WAITING) for number in self.open]
        failed = sum(end.status > 1 for end in self.ends.values())
        return Standing(states.count(RUNNING), states.count(WAITING), self._repeated, failed)

    def begin(self) -> None:
        """Takes up what an earlier start left, and submits the rest."""
        before = self._left()
        if before:
            states = self._place.states(list(before.values()))
            alive = {n: name for n, name in before.items() if states[name] in (RUNNING, WAITING)}
            if alive:
                self._notice(f"{len(alive)} tasks of an earlier start are taken up.")
            self.ids |= alive
        self._submit([number for number in sorted(self.open) if number not in self.ids])

    def look(self) -> None:
        """Sees who has ended, and submits again who died."""
        self._states = self._place.states([self.ids[number] for number in sorted(self.open)])
        again = []
        for number in sorted(self.open):
            state = self._states[self.ids[number]]
            end = read_end(self._end(number))
            if end is not None:
                self.ends[number] = end
                self.open.discard(number)
            elif state == "COMPLETED" and self._late[number] < _LATE:
                # The note of its end may reach this machine later than its state.
                self._late[number] += 1
            elif state not in (RUNNING, WAITING) and self._dies(number, state):
                again.append(number)
        self._repeated += len(again)
        self._submit(again)

    def _dies(self, number: int, state: str) -> bool:
        """Notes a death; whether the task is tried again."""
        come = self._further(number)
        self._tries[number] = 1 if come > self._come[number] else self._tries[number] + 1
        self._come[number] = max(come, self._come[number])
        full, cancelled = self._is_full(), state.startswith("CANCELLED")
        how = f"{self._tasks[number].name} died ({state.lower().replace('_', ' ')}"
        how += f"; no room is left in {paths.shown(self._folder.parent)})" if full else ")"
        if full or cancelled or self._tries[number] >= TRIES:
            often = f" {TRIES} times in a row, without getting further in between"
            times = "" if full or cancelled else often
            self.ends[number] = End(3, f"{how}{times}. What was answered is kept")
            self.open.discard(number)
            return False
        self._notice(f"{how}, and is submitted again.")
        return True

    def _is_full(self) -> bool:
        with suppress(OSError):
            return shutil.disk_usage(self._folder.parent).free < _FULL
        return False

    def _submit(self, numbers: Sequence[int]) -> None:
        if not numbers:
            return
        for number in numbers:
            self._end(number).unlink(missing_ok=True)
        chosen = [(self._tasks[number], self._end(number)) for number in numbers]
        self.ids |= dict(zip(numbers, self._place.submit(chosen), strict=True))
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
        with replacing(self._note) as part:
            content = {"words": self._words, "ids": self.ids}
            part.write_text(json.dumps(content), encoding="utf-8")

    def _left(self) -> dict[int, str]:
        """Ids of tasks that an earlier start submitted, if they do the same."""
        content: Any
        try:
            content = json.loads(self._note.read_text(encoding="utf-8"))
            found = {int(number): str(name) for number, name in content["ids"].items()}
            words = content["words"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}
        if not self._place.lasting:
            return {}
        if words != self._words:
            # They do something else with the same journals.
            self._place.cancel(list(found.values()))
            return {}
        return {number: name for number, name in found.items() if number in self.open}

    @property
    def _words(self) -> list[list[str]]:
        return [list(task.words) for task in self._tasks]

    @property
    def _note(self) -> Path:
        return self._folder / "tasks.json"

    def _end(self, number: int) -> Path:
        return self._folder / f"end-{number}.json"
