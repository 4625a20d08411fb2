"""How many calls may be in flight at once: what a service bears, found by trying.

A run begins with one call alone, so that a wrong key or an unknown parameter costs one
call, and a prompt's static part is written to a provider's cache once and not by all
calls at the same moment. Its answer opens the window for ten, and from there the number
doubles with each round-trip up to the limit, or to the first overload. An overload halves
it; after that it grows by one with each round-trip (a first window of ten, additive
increase, multiplicative decrease, as in TCP: RFC 6928 and RFC 5681).

A round-trip ends when a call that began after the last change for the worse comes back.
Calls that were in flight at that change tell what is known already: a burst of
refused calls halves the number once, and those of the burst that came through do not
raise it again.
"""

from __future__ import annotations

from typing import Final

LEAST: Final = 1.0
FIRST: Final = 10.0
DECREASE: Final = 0.5


class Window:
    """Counts calls in flight and says whether another one may begin.

    Args:
        limit: Calls that may be in flight at most; at least 1.
    """

    def __init__(self, limit: int) -> None:
        self.limit = max(limit, 1)
        self.flying = 0
        self._size = LEAST
        self._doubling = True
        self._round = 0
        self._shut_until = 0.0

    @property
    def size(self) -> int:
        """Calls that may be in flight at once, for now: from 1 to the limit."""
        return int(self._size)

    def wait(self, now: float) -> float | None:
        """Says when the next call may begin.

        Args:
            now: Seconds on any clock that does not go back.

        Returns:
            0 for at once; the seconds for which the service wants to be left alone; or
            ``None`` if a call has to come back first.
        """
        if self.flying >= self.size:
            return None
        return max(self._shut_until - now, 0.0)

    def begin(self) -> int:
        """Counts a call that begins; gives the round that it belongs to."""
        self.flying += 1
        return self._round

    def answered(self, began: int) -> None:
        """Counts a call that came back with an answer.

        Args:
            began: What :meth:`begin` gave.
        """
        self.flying -= 1
        if began == self._round:
            steady = self._size + 1.0 / self._size
            grown = max(self._size + 1.0, FIRST) if self._doubling else steady
            self._size = min(grown, float(self.limit))

    def overloaded(self, began: int, until: float = 0.0) -> None:
        """Counts a call that the service was too busy for.

        Args:
            began: What :meth:`begin` gave.
            until: When the service wants to be asked again, on the clock of :meth:`wait`.
        """
        self.flying -= 1
        self._shut_until = max(self._shut_until, until)
        if began == self._round:
            self._size = max(self._size * DECREASE, LEAST)
            self._doubling = False
            self._round += 1

    def ended(self) -> None:
        """Counts a call that came back with something that says nothing about load."""
        self.flying -= 1
