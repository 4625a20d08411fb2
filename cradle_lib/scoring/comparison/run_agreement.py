"""Whether two runs say the same, turn by turn: of two engines, two machines, two number formats.

A *flip* is a user turn on which two runs differ in what is read: in the tags, or in whether the
answer could be read at all. Two runs with equal scores may still flip, so that a faster way to
run a model is judged by its flips and not by its scores. Compared are also the raw texts, which
say more where a model writes answers that can't be read: an engine that stops after the line
that counts writes the beginning of what another engine writes.

The unit of inference is the dialogue, because after a flip the model sees another history: the
turns after it are asked other questions, and flip together. Intervals over turns are shown for
comparison with other work and are too narrow for that reason.

References:
    Clopper and Pearson, "The Use of Confidence or Fiducial Limits Illustrated in the Case of
    the Binomial", 1934; Hanley and Lippman-Hand, "If Nothing Goes Wrong, Is Everything All
    Right?", JAMA 1983 (the rule of three).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scipy.stats import beta

from cradle_lib.detection.parsing import first_line
from cradle_lib.errors import ScoringError
from cradle_lib.statistics.bootstrap import CONFIDENCE

if TYPE_CHECKING:
    from cradle_lib.detection.session import Prediction

Pair = tuple["Prediction", "Prediction"]
TEXTS: Final = ("identical", "beginning", "same line", "different")


@dataclass(frozen=True, slots=True)
class Usage:
    """What one of the runs computed for the turns that are compared.

    Attributes:
        tokens_in: Tokens of the prompts; ``None`` if the run does not tell.
        tokens_cached: Those of them that were not computed again; ``None`` likewise.
        tokens_out: Tokens of the answers; ``None`` likewise.
        seconds: Time of the answers.
    """

    tokens_in: int | None
    tokens_cached: int | None
    tokens_out: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Flips:
    """What two runs have in common.

    Attributes:
        turns: User turns that both runs answered.
        dialogues: Dialogues that these turns belong to.
        same_question: Turns on which both were asked the very same prompt. A question that
            differs follows from an earlier flip, or from another prompt or corpus.
        texts: Turns by how the raw texts compare, in the order of :data:`TEXTS`: identical;
            one is the beginning of the other; only the line that is read is the same; or
            that line differs.
        outcomes: Turns with the same outcome.
        tags: Turns with the same tags.
        flipped: Turns that flipped, as dialogue and turn, in order.
        first_flips: Those that flipped although the question was the same.
        flipped_dialogues: Dialogues with at least one of :attr:`flipped`.
        usage: What each run computed.
    """

    turns: int
    dialogues: int
    same_question: int
    texts: dict[str, int]
    outcomes: int
    tags: int
    flipped: tuple[tuple[str, int], ...]
    first_flips: int
    flipped_dialogues: int
    usage: tuple[Usage, Usage]

    @property
    def turn_rate(self) -> tuple[float, float, float]:
        """Share of turns that flipped, with its interval as if turns were independent."""
        return rate(len(self.flipped), self.turns)

    @property
    def dialogue_rate(self) -> tuple[float, float, float]:
        """Share of dialogues with a flip, with its interval."""
        return rate(self.flipped_dialogues, self.dialogues)


def flips(first: Sequence[Prediction], second: Sequence[Prediction]) -> Flips:
    """Compares two runs on the turns that both answered.

    Args:
        first: Predictions of one run, each turn once.
        second: Those of the other.

    Returns:
        The comparison; it is symmetric but for the order of :attr:`Flips.usage`.

    Raises:
        ScoringError: If no turn was answered by both.
    """
    others = {(p.dialogue, p.turn): p for p in second}
    pairs = [(p, others[p.dialogue, p.turn]) for p in first if (p.dialogue, p.turn) in others]
    pairs.sort(key=lambda pair: (pair[0].dialogue, pair[0].turn))
    if not pairs:
        raise ScoringError(
            "the two runs have no user turn in common. Compare runs over the same dialogues."
        )
    flipped = [(a, b) for a, b in pairs if (a.mask, a.outcome) != (b.mask, b.outcome)]
    texts = [_compare_texts(a.answer, b.answer) for a, b in pairs]
    return Flips(
        turns=len(pairs),
        dialogues=len({a.dialogue for a, _ in pairs}),
        same_question=sum(a.key == b.key for a, b in pairs),
        texts={kind: texts.count(kind) for kind in TEXTS},
        outcomes=sum(a.outcome is b.outcome for a, b in pairs),
        tags=sum(a.mask == b.mask for a, b in pairs),
        flipped=tuple((a.dialogue, a.turn) for a, _ in flipped),
        first_flips=sum(a.key == b.key for a, b in flipped),
        flipped_dialogues=len({a.dialogue for a, _ in flipped}),
        usage=(_usage([a for a, _ in pairs]), _usage([b for _, b in pairs])),
    )


def rate(hits: int, of: int) -> tuple[float, float, float]:
    """Estimates a share with an exact 95 % interval.

    Args:
        hits: How often it happened; 0 to ``of``.
        of: How often it could have happened; at least 1.

    Returns:
        The share, and the bounds of Clopper and Pearson. At 0 the interval has one end only,
        1 - 0.05^(1/n), which is about 3/n: the rule of three. At n it is the mirror image.

    Raises:
        ScoringError: If the numbers are not as described.
    """
    if not 0 <= hits <= of or of < 1:
        raise ScoringError(f"{hits} of {of}: expected a count out of at least 1.")
    outside = 1 - CONFIDENCE
    if hits == 0:
        return 0.0, 0.0, float(1 - outside ** (1 / of))
    if hits == of:
        return 1.0, float(outside ** (1 / of)), 1.0
    low = beta.ppf(outside / 2, hits, of - hits + 1)
    high = beta.ppf(1 - outside / 2, hits + 1, of - hits)
    return hits / of, float(low), float(high)


def _compare_texts(one: str, other: str) -> str:
    if one == other:
        return "identical"
    short, long = sorted((one.rstrip(), other.rstrip()), key=len)
    if first_line(one) != first_line(other):
        return "different"
    return "beginning" if long.startswith(short) else "same line"


def _usage(predictions: Sequence[Prediction]) -> Usage:
    def total(name: str) -> int | None:
        values = [getattr(p, name) for p in predictions]
        return None if None in values else sum(values)

    return Usage(
        total("tokens_in"),
        total("tokens_cached"),
        total("tokens_out"),
        sum(p.seconds for p in predictions),
    )
