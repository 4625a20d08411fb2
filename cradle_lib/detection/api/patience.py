"""How long to wait for a service, and when to say that one is waiting."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on with a service that does not answer; times in seconds.

    Attributes:
        attempts: Calls for one question before it has failed.
        deadline: For one call, all in all.
        base: Before the second attempt; doubled for each further one.
        cap: Longest wait between attempts of our own choice.
        failures: Questions in a row that may fail before the run stops.
        connect: For a service that can't be reached at all and has not answered yet.
        word: Without any answer until the first word about it; later words come at twice the
            time of the one before.
        silence: Without any answer until the run stops. A service that asks for a longer wait
            is left alone at once.
        poll: Between two looks at a batch.
    """

    attempts: int = 6
    deadline: float = 120.0
    base: float = 1.0
    cap: float = 60.0
    failures: int = 10
    connect: float = 8.0
    word: float = 10.0
    silence: float = 300.0
    poll: float = 30.0

    @classmethod
    def of(cls, deadline: float) -> Patience:
        """The usual patience for calls that may last so long."""
        usual = cls()
        return replace(usual, deadline=deadline, silence=max(usual.silence, 2.5 * deadline))


class Silence:
    """The time since the last answer.

    Args:
        patience: How long it may last.
        now: When it begins, in seconds of any clock.
    """

    def __init__(self, patience: Patience, now: float) -> None:
        self._patience = patience
        self._since = now
        self._word = patience.word

    @property
    def end(self) -> float:
        """When patience is over."""
        return self._since + self._patience.silence

    @property
    def due(self) -> float:
        """When something is to be said, or patience is over."""
        return min(self._since + self._word, self.end)

    def lasts(self, now: float) -> float:
        """Seconds without an answer."""
        return now - self._since

    def heard(self, now: float, took: float) -> None:
        """Ends the silence, with an answer that took a time, and begins the next.

        What takes up to twice as long as the last answer is no news.
        """
        self._since, self._word = now, max(self._patience.word, 2.0 * took)

    def told(self) -> None:
        """Puts the next word off to twice the time of this one."""
        self._word *= 2


def span(seconds: float) -> str:
    """Writes a time for people: ``40 s``, ``5 min``, ``24 h``."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
