"""How many calls may be in flight at once: what a service bears, found by trying.

A run begins with one call alone, so that a wrong key costs one call and a prompt's static part
is in a provider's cache before others need it. Its answer admits ten, each further one one more,
up to the limit or the first overload. An overload halves the number; after that it grows by one
with each round-trip (additive increase, multiplicative decrease, as in TCP: RFC 5681).
"""

from __future__ import annotations

from typing import Final

FIRST: Final = 10.0


class Admission:
    """Decides whether another call may begin; times are seconds of any clock.

    Args:
        limit: Calls that may be in flight at most; at least 1.
    """

    def __init__(self, limit: int) -> None:
        self._limit = float(max(limit, 1))
        self._size = 1.0
        self._opening = True
        self._cut = float("-inf")
        self.shut_until = float("-inf")

    def admits(self, flying: int, now: float) -> bool:
        """Whether a call may begin beside those in flight."""
        return flying < int(self._size) and now >= self.shut_until

    def answered(self, began: float) -> None:
        """Counts an answer to a call that began at a time."""
        # One that was in flight at the last overload says nothing about the number since.
        if began >= self._cut:
            steady = self._size + 1.0 / self._size
            self._size = max(self._size + 1.0, FIRST) if self._opening else steady
            self._size = min(self._size, self._limit)

    def overloaded(self, began: float, now: float) -> None:
        """Counts a call that the service was too busy for; a burst of them counts once."""
        if began >= self._cut:
            self._size, self._opening, self._cut = max(self._size / 2, 1.0), False, now

    def shut(self, until: float) -> None:
        """Lets nobody through until a time: the service asked for it, or is away."""
        self.shut_until = max(self.shut_until, until)
