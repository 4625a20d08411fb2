"""Lets calls through to a service: as many at once as its window allows, oldest dialogue first.

Older dialogues go first so that, when the window is small, a few dialogues advance
quickly while the provider still holds their beginnings in its cache, and not all slowly.

Calls are let through one by one, each after the one before has been sent. Answers that come
in together would otherwise have their next questions made together, and all of these sent
after the last was made: such bursts never dissolve, and each call waits for all of its burst.
"""

from __future__ import annotations

import asyncio
import heapq
from contextlib import suppress
from itertools import count

from cradle_lib.detection.engines.window import Window

_Waiting = tuple[int, int, "asyncio.Future[int | None]"]


class Gate:
    """Where calls wait; made inside a running event loop.

    Args:
        limit: Calls that may be in flight at most.
    """

    def __init__(self, limit: int) -> None:
        self.window = Window(limit)
        self.closed = False
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        self._waiting: list[_Waiting] = []
        self._numbers = count()
        self._due = False
        self._alarm: asyncio.TimerHandle | None = None

    async def enter(self, rank: int) -> int | None:
        """Waits until a call may begin.

        Args:
            rank: Position of the dialogue; lower ones go first.

        Returns:
            The call's round, for :meth:`leave`; ``None`` if the gate was closed.
        """
        if self.closed:
            return None
        ticket: asyncio.Future[int | None] = self._loop.create_future()
        heapq.heappush(self._waiting, (rank, next(self._numbers), ticket))
        self._soon()
        return await ticket

    def leave(self, began: int, *, answered: bool, wait: float | None = None) -> None:
        """Says how a call came back, and lets the next ones in.

        Args:
            began: What :meth:`enter` gave.
            answered: Whether there was an answer.
            wait: If the service was overloaded, seconds for which it wants to be left
                alone, 0 if it named none; else ``None``.
        """
        if answered:
            self.window.answered(began)
        elif wait is None:
            self.window.ended()
        else:
            self.window.overloaded(began, self._loop.time() + wait if wait else 0.0)
        # Not at once: the dialogue that comes back may be the oldest, and have another question.
        self._soon()

    async def pause(self, seconds: float) -> None:
        """Waits, but not longer than until the gate is closed."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    def close(self) -> None:
        """Lets nobody through any more; calls in flight go on. Safe from any thread."""
        self.closed = True
        # The loop is closed already if everything has ended in the same moment.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._release)

    def _admit(self) -> None:
        self._due = False
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if not self._waiting or self.closed:
            return
        wait = self.window.wait(self._loop.time())
        if wait is None:
            return
        if wait > 0:
            self._alarm = self._loop.call_later(wait, self._admit)
            return
        _, _, ticket = heapq.heappop(self._waiting)
        ticket.set_result(self.window.begin())
        self._soon()

    def _soon(self) -> None:
        if not self._due:
            self._due = True
            self._loop.call_soon(self._admit)

    def _release(self) -> None:
        self._closing.set()
        if self._alarm is not None:
            self._alarm.cancel()
        for _, _, ticket in self._waiting:
            ticket.set_result(None)
        self._waiting.clear()
