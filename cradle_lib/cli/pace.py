"""How fast a run goes, what it saves, and how long it still takes.

The rate is that of the last minute, because turns get slower as histories grow and a run that
is resumed says nothing about its earlier starts. Time before the first answer, in which weights
are loaded, counts only until there is something better.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from cradle_lib.detection import Progress
from cradle_lib.detection.cost.money import dollars

WINDOW: Final = 60.0
# A slow model gives few answers a minute: a rate rests on so many of them, however old.
_LEAST: Final = 8
# Many dialogues may answer in the same instant; over less than this a rate means nothing.
_SHORTEST: Final = 1.0


class Pace:
    """The pace of one start of a run.

    Args:
        window: Seconds that the rate is taken over.
        unit: What is counted.

    Attributes:
        rate: Of these per second; ``None`` before the first answer.
        left: Seconds until the run is finished; ``None`` before the first answer.
        reused: Share of prompt tokens that were not computed again, over the answers of this
            start; ``None`` for a model that does not tell.
        spent: Dollars that the answers of this start cost.
    """

    def __init__(self, window: float = WINDOW, unit: str = "turns") -> None:
        self._window, self._unit = window, unit
        self._start: tuple[float, int] | None = None
        self._answers: deque[tuple[float, int]] = deque()
        self.rate: float | None = None
        self.left: float | None = None
        self.reused: float | None = None
        self.spent = 0.0

    def update(self, progress: Progress, now: float) -> None:
        """Takes note of where a run stands.

        Args:
            progress: As the run reports it: at the start and after every answer.
            now: Seconds of a clock that never goes back.
        """
        if self._start is None:
            self._start = (now, progress.done)
        self.spent = progress.spent
        if progress.done <= progress.stored:
            return
        self._answers.append((now, progress.done))
        while len(self._answers) > _LEAST and self._answers[1][0] <= now - self._window:
            self._answers.popleft()
        since, before = self._answers[0]
        if now - since < _SHORTEST:
            since, before = self._start
        if now > since:
            self.rate = (progress.done - before) / (now - since)
            self.left = (progress.total - progress.done) / self.rate
        if progress.tokens_in:
            self.reused = progress.tokens_cached / progress.tokens_in

    def __str__(self) -> str:
        """Says it in words, as much as is known."""
        parts = []
        if self.rate is not None:
            parts.append(f"{_digits(self.rate)} {self._unit}/s")
        if self.reused is not None:
            parts.append(f"{_share(self.reused)} reused")
        if self.left is not None:
            parts.append(f"{duration(self.left)} left")
        if self.spent:
            parts.append(dollars(self.spent))
        return ", ".join(parts)


def duration(seconds: float) -> str:
    """Writes a duration in its two greatest units, such as ``3 h 20 min``.

    Args:
        seconds: 0 or more; rounded up, so that what is not over is never ``0 s``.
    """
    whole = int(-(-seconds // 1))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02} min"


def _digits(rate: float) -> str:
    return f"{rate:.0f}" if rate >= 100 else f"{rate:.3g}"


def _share(share: float) -> str:
    # Rounding must not claim that everything was reused.
    return f"{min(int(100 * share + 0.5), 99 if share < 1 else 100)} %"
