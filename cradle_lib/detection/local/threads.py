"""Threads of a model on a processor that other processes use too.

PyTorch divides every operation among its threads and waits for the last of them, hundreds of
times in one forward pass. If another process holds the core of one thread, all wait for it until
the system gives the core back; and a thread that waits by spinning takes that core from
somebody in turn. So threads wait passively, and there are only as many as cores are free.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

# How often the cores are looked at, in seconds: far longer than the system lets one process run,
# far shorter than a run.
PERIOD: Final = 1.0
# Who takes less than this share of a core leaves it to us.
SLIGHT: Final = 0.4


def wait_passively() -> None:
    """Lets OpenMP's threads sleep while they wait; for PyTorch, if it has not been loaded yet.

    A user's own setting of ``OMP_WAIT_POLICY`` stays as it is.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def busy_seconds() -> float:
    """Seconds that our cores have worked so far for all processes, added up over cores."""
    import psutil

    times = psutil.cpu_times(percpu=True)
    busy: float = sum(
        sum(core) - core.idle - getattr(core, "iowait", 0.0) - getattr(core, "guest", 0.0)
        for core in (times[index] for index in cores() if index < len(times))
    )
    return busy


class FreeCores:
    """Follows how many cores other processes leave.

    Args:
        most: No more threads than this: what PyTorch was set to.
        clock: Gives seconds.
        busy: Gives seconds that all processes have used our cores.
        own: Gives seconds that this process has used them.
    """

    def __init__(
        self,
        most: int,
        clock: Callable[[], float] = time.monotonic,
        busy: Callable[[], float] = busy_seconds,
        own: Callable[[], float] = time.process_time,
    ) -> None:
        self._most, self._clock, self._busy, self._own = most, clock, busy, own
        self._cores = len(cores())
        self._before = (clock(), busy(), own())
        self.threads = most

    def look(self) -> int:
        """Counts the threads that have a core to themselves.

        Returns:
            The cores that others did not use since the last look, as a whole number from 1 to
            ``most``; what it was before, if the last look was less than :data:`PERIOD` ago.
        """
        now = (self._clock(), self._busy(), self._own())
        passed, busy, own = (a - b for a, b in zip(now, self._before, strict=True))
        if passed >= PERIOD:
            self._before = now
            others = (busy - own) / passed
            self.threads = max(1, min(self._most, int(self._cores - others + SLIGHT)))
        return self.threads


@contextmanager
def following_free_cores() -> Iterator[Callable[[], None]]:
    """Lets PyTorch use the cores that are free, for the time of a block.

    Yields:
        A function to be called now and then, between forward passes.
    """
    import torch

    usual = torch.get_num_threads()
    free = FreeCores(usual)

    def adapt() -> None:
        if usual > 1 and free.look() != torch.get_num_threads():
            torch.set_num_threads(free.threads)

    try:
        yield adapt
    finally:
        torch.set_num_threads(usual)
