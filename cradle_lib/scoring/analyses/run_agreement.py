"""Compares two runs turn by turn, such as runs on two engines, machines or number formats.

A *flip* is a user turn on which two runs differ in their predictions or in the outcome of parsing.
Runs with equal scores can still have flips, so a faster engine is judged by its flips and not by
its scores. The raw texts are compared too, because unparsed answers all predict the same. An engine
that stops after the line that is parsed writes a prefix of another engine's text.

The unit of inference is the dialogue: after a flip the model sees another history, so later turns
have different prompts and their flips depend on each other. Intervals over turns are therefore too
narrow; they are given for comparison with other work.

References:
    Clopper and Pearson, "The Use of Confidence or Fiducial Limits Illustrated in the Case of
    the Binomial", 1934; Hanley and Lippman-Hand, "If Nothing Goes Wrong, Is Everything All
    Right?", JAMA 1983 (the rule of three).
"""

from __future__ import annotations

from typing import Final

import pandas as pd

from cradle_lib.arguments import checked, require_known
from cradle_lib.detection.protocol.parsing import first_line
from cradle_lib.errors import ScoringError
from cradle_lib.statistics.bootstrap import CONFIDENCE

TEXTS: Final = ("same text", "one begins the other", "same line", "other line")
_MEANINGS: Final = {
    "same question": "The same prompt",
    "same text": "The same raw text",
    "one begins the other": "One raw text is a prefix of the other",
    "same line": "Different raw texts after the same first line",
    "other line": "Different first lines",
    "same outcome": "The same outcome",
    "same tags": "The same labels",
    "neither read": "Neither answer could be parsed",
    "flipped turns": "Turns that flipped",
    "first flips": "of these, with the same prompt",
    "flipped dialogues": "Dialogues with a flip",
}


@checked
def run_agreement(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Compares two runs on the turns that both answered.

    Args:
        first: The answers of one run, each turn once, as :func:`.stored_answers` lists them.
        second: The answers of the other run, in any order.

    Returns:
        One row for each measure: ``measure`` (str), ``meaning`` (str: the measure for readers),
        ``count`` and ``of`` (int), and their ratio with its interval, ``value``, ``low`` and
        ``high`` (float, 0 to 1).

        - ``same question``: turns on which both received the same prompt. Prompts differ after an
          earlier flip, or if the template or corpus differs.
        - Turns by their raw texts: ``same text``; ``one begins the other`` (the first lines are
          equal, and one text is a prefix of the other); ``same line`` (only the first lines are
          equal); ``other line`` (the first lines differ).
        - ``same outcome``, ``same tags`` (labels): turns; ``neither read``: turns on which neither
          answer could be parsed, so that both predict nothing.
        - ``flipped turns``: turns whose labels or outcome differ; ``first flips``: those with the
          same prompt; ``flipped dialogues``: dialogues with a flip.

    Raises:
        ScoringError: If no turn was answered by both.
    """
    for frame in (first, second):
        for column in ("dialogue", "turn", "question", "predicted", "outcome", "answer"):
            require_known("column", column, [*frame])
    both = first.merge(second, on=["dialogue", "turn"], suffixes=("", "_2"))
    if both.empty:
        raise ScoringError(
            "the two runs have no user turn in common. Compare runs over the same dialogues."
        )
    same = {name: both[name] == both[f"{name}_2"] for name in ("question", "outcome", "predicted")}
    texts = pd.Series(
        [_compare_texts(*pair) for pair in zip(both["answer"], both["answer_2"], strict=True)]
    )
    flipped = ~(same["predicted"] & same["outcome"])
    counts = {
        "same question": same["question"].sum(),
        **{kind: (texts == kind).sum() for kind in TEXTS},
        "same outcome": same["outcome"].sum(),
        "same tags": same["predicted"].sum(),
        "neither read": ((both["outcome"] != "ok") & (both["outcome_2"] != "ok")).sum(),
        "flipped turns": flipped.sum(),
        "first flips": (flipped & same["question"]).sum(),
        "flipped dialogues": both.loc[flipped, "dialogue"].nunique(),
    }
    totals = dict.fromkeys(counts, len(both)) | {"flipped dialogues": both["dialogue"].nunique()}
    rows = [
        (name, _MEANINGS[name], hits, totals[name], *rate(int(hits), totals[name]))
        for name, hits in counts.items()
    ]
    columns = ["measure", "meaning", "count", "of", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def rate(hits: int, of: int) -> tuple[float, float, float]:
    """Estimates the share ``hits / of`` with an exact 95 % interval; ``of`` is at least 1.

    The bounds are those of Clopper and Pearson. With no hits the interval is one-sided, with the
    upper bound 1 - 0.05^(1/n), about 3/n (the rule of three). With n hits it is the mirror image.
    """
    outside = 1 - CONFIDENCE
    if hits == 0:
        return 0.0, 0.0, float(1 - outside ** (1 / of))
    if hits == of:
        return 1.0, float(outside ** (1 / of)), 1.0
    # Imported here because it takes a second, and most commands do not need it.
    from scipy.stats import beta

    low = beta.ppf(outside / 2, hits, of - hits + 1)
    high = beta.ppf(1 - outside / 2, hits + 1, of - hits)
    return hits / of, float(low), float(high)


def _compare_texts(one: str, other: str) -> str:
    if one == other:
        return "same text"
    short, long = sorted((one.rstrip(), other.rstrip()), key=len)
    if first_line(one) != first_line(other):
        return "other line"
    return "one begins the other" if long.startswith(short) else "same line"
