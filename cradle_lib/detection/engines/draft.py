"""Guesses how an answer goes on, from the answers that a run has written so far.

Answers are much alike: most are ``none``, many are the same label, and a model that misses the
format misses it in the same words, above all in the same dialogue. So the wave engine lets
the model look at several tokens of an answer in one forward pass: those that it would write if
it went on as it did before. Each is compared with what the model says itself, and the first
that differs is thrown away with all after it. A wrong guess costs time and never changes an
answer.

References:
    Verifying guesses in one pass: Leviathan et al. 2023, "Fast Inference from Transformers
    via Speculative Decoding" (arXiv 2211.17192). Guessing from earlier text without a second
    model: He et al. 2023, "REST" (arXiv 2311.08252).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# Stands for the end of an answer.
END: Final = -2
# How many tokens before the next one are looked up, the longest first.
REACHES: Final = (8, 4, 2)
# A context that was seen once tells something only if it is at least this long.
LONG: Final = 4
# Where a dialogue has a habit of its own, each sighting in it counts so much, and those of all
# dialogues together no more than the other number.
OWN: Final = 4
ALL: Final = 2
# What speaks against a guess before anything was seen, in sightings.
DOUBT: Final = 0.25
# Contexts that are remembered: some 40 MB of them.
MOST: Final = 100_000

_Context = tuple[int, ...]
_BEFORE: Final = (-1,) * max(REACHES)


class Habits:
    """Which tokens followed which in answers.

    Attributes:
        followed: For the last tokens of an answer, how often each token came next.
    """

    def __init__(self) -> None:
        self.followed: dict[_Context, dict[int, int]] = {}

    def see(self, context: _Context, token: int) -> None:
        """Counts a token after the last tokens of an answer."""
        for reach in REACHES:
            found = self.followed.get(context[-reach:])
            if found is None:
                if len(self.followed) >= MOST:
                    continue
                found = self.followed[context[-reach:]] = {}
            found[token] = found.get(token, 0) + 1


class Drafts:
    """Guesses for one dialogue.

    Args:
        everyone: The habits of all dialogues of a run.
    """

    def __init__(self, everyone: Habits) -> None:
        self._everyone, self._own = everyone, Habits()

    def learn(self, answer: Sequence[int], begin: int = 0) -> None:
        """Remembers what the model wrote.

        Args:
            answer: The answer so far, as far as the model was asked how it goes on; then
                :data:`END`, if it is whole.
            begin: The first token that is new.
        """
        text = (*_BEFORE, *answer)
        for place in range(begin + len(_BEFORE), len(text)):
            context = text[place - len(_BEFORE) : place]
            self._everyone.see(context, text[place])
            self._own.see(context, text[place])

    def guess(self, answer: Sequence[int], sure: float, most: int) -> list[int]:
        """Guesses the next tokens of an answer.

        Args:
            answer: The answer so far; may be empty.
            sure: The least probability that all of the guess is right, from 0 to 1.
            most: No more tokens than this.

        Returns:
            The tokens; none if nothing can be said with that certainty, or if the answer seems to
            be whole.
        """
        text, chance = (*_BEFORE, *answer), 1.0
        while len(text) - len(_BEFORE) - len(answer) < most:
            token, share = self._next(text[-len(_BEFORE) :])
            chance *= share
            if chance < sure or token == END:
                break
            text = (*text, token)
        return list(text[len(_BEFORE) + len(answer) :])

    def _next(self, context: _Context) -> tuple[int, float]:
        """The likeliest next token and its probability, by the longest context that is known."""
        for reach in REACHES:
            found = self._everyone.followed.get(context[-reach:], {})
            seen = sum(found.values())
            if seen > 1 or (seen == 1 and reach >= LONG):
                break
        else:
            return END, 0.0
        own = self._own.followed.get(context[-reach:], {})
        weight = min(seen, ALL) if own else seen
        scores = {t: weight * n / seen + OWN * own.get(t, 0) for t, n in found.items()}
        token = max(scores, key=scores.__getitem__)
        return token, scores[token] / (sum(scores.values()) + DOUBT)
