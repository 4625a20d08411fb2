"""What a service bears, found by trying, and how long to wait for it; times are in seconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

_FIRST: Final = 10.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on with a service that does not answer.

    Attributes:
        attempts: Calls for one question before it has failed.
        deadline: For one call, all in all.
        base: Before the second attempt; doubled for each further one.
        cap: Longest wait between attempts of our own choice.
        failures: Questions in a row that may fail before the run stops.
        connect: For a service that can't be reached at all and has not answered yet.
        notice: Without any answer until the first message about it; each later one comes at twice
            the time of the one before.
        silence: Without any answer until the run stops. A service that asks for a longer wait
            is left alone at once.
    """

    attempts: int = 6
    deadline: float = 120.0
    base: float = 1.0
    cap: float = 60.0
    failures: int = 10
    connect: float = 8.0
    notice: float = 10.0
    silence: float = 300.0

    @classmethod
    def of(cls, deadline: float) -> Patience:
        """The usual patience for calls that may last so long."""
        usual = cls()
        return replace(usual, deadline=deadline, silence=max(usual.silence, 2.5 * deadline))

    def pause(self, attempts: int, share: float = 1.0) -> float:
        """Before another attempt after so many: a share of a time that doubles with each."""
        return min(self.base * 2.0 ** min(attempts - 1, 30) * share, self.cap)


class Admission:
    """Decides whether another call may begin; times are those of any clock.

    A run begins with one call alone, so that a wrong key costs one call and a prompt's static part
    is in a provider's cache before others need it. Its answer admits ten, each further one one
    more, up to the limit or the first overload. An overload halves the number; after that it grows
    by one with each round-trip (additive increase, multiplicative decrease, as in TCP: RFC 5681).
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
            self._size = max(self._size + 1.0, _FIRST) if self._opening else steady
            self._size = min(self._size, self._limit)

    def overloaded(self, began: float, now: float) -> None:
        """Counts a call that the service was too busy for; a burst of them counts once."""
        if began >= self._cut:
            self._size, self._opening, self._cut = max(self._size / 2, 1.0), False, now

    def shut(self, until: float) -> None:
        """Lets nobody through until a time: the service asked for it, or is away."""
        self.shut_until = max(self.shut_until, until)


def span(seconds: float) -> str:
    """Writes a time for people: ``40 s``, ``5 min``, ``24 h``."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
