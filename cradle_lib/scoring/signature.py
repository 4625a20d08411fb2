"""The signature: one line that names all that could change a score.

Two numbers may be compared only if they were measured under the same conditions, so that their
signatures agree but for what the comparison is about. One part is no condition but a property of
the system, as its name is: how its answers were decoded. A model that may write only answers that
parse is another system than the same model writing freely; both may stand in one table, and the
signature tells them apart.

The idea is sacreBLEU's (Post, "A Call for Clarity in Reporting BLEU Scores", 2018).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, get_type_hints

import pandas as pd

from cradle_lib.errors import ScoringError

_FORM: Final = (
    "cradle|lvl:{level}|labels:{labels}|hist:{history}|dec:{decoding}|empty:{empty_jaccard}|"
    "zd:{zero_division}|orphans:{orphans}|unparsed:{unparsed}|macro:{macro_f1}|corpus:{corpus}|"
    "n:{dialogues}|boot:{draws}@{seed}|v{version}"
)
# The same with a group of its own for each part.
_PATTERN: Final = re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^|]*)", re.escape(_FORM)))
_EXAMPLE: Final = (
    "cradle|lvl:turn|labels:16|hist:self|dec:free|empty:1|zd:0|orphans:ignore|"
    "unparsed:miss|macro:mean|corpus:ab12cd34ef56|n:600|boot:10000@0|v0.1.0"
)
_HISTORIES: Final = {
    "self": "the model saw its own earlier predictions",
    "gold": "the model saw the gold labels of earlier turns",
    "none": "the model saw no earlier labels",
}
_DECODINGS: Final = {
    "free": "free decoding",
    "constrained": "constrained decoding, which permits only valid answers",
}
# What two systems may differ in and still be compared.
_OF_THE_SYSTEM: Final = ("decoding",)
_ORPHANS: Final = {
    "ignore": "are ignored",
    "attach": "move to the previous user turn",
    "count": "count as misses",
}
_MACRO_F1: Final = {
    "mean": "mean of the labels' F1",
    "harmonic": "harmonic mean of macro precision and macro recall",
}
_UNPARSED: Final = {
    "miss": "count as no prediction and are never correct",
    "none": "count as no crisis",
    "exclude": "are left out with their turns",
}


@dataclass(frozen=True, slots=True)
class Signature:
    """What a score depends on.

    ``labels`` is the number of labels that were scored, ``history`` whose tags the model saw, and
    ``decoding`` is ``free`` or ``constrained``, with a plus sign between them where systems of both
    kinds share a signature. ``corpus`` is a fingerprint, ``draws`` are 0 where there are no
    intervals, and ``version`` is this library's. The rest is as in :class:`.Conventions`.
    """

    level: str
    labels: int
    history: str
    decoding: str
    empty_jaccard: float
    zero_division: float
    orphans: str
    unparsed: str
    macro_f1: str
    corpus: str
    dialogues: int
    draws: int
    seed: int
    version: str

    def __str__(self) -> str:
        """The short form, in one line without spaces."""
        values = asdict(self)
        for name in ("empty_jaccard", "zero_division"):
            values[name] = _shortest(values[name])
        return _FORM.format(**values)

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Reads the short form.

        Raises:
            ScoringError: If a part is missing, unknown or out of order, or not a number
                where one is expected.
        """
        found = _PATTERN.fullmatch(text.strip())
        kinds, wrong = get_type_hints(cls), ""
        try:
            if found:
                return cls(
                    **{part: kinds[part](value) for part, value in found.groupdict().items()}
                )
        except ValueError as error:
            wrong = f" ({error})"
        raise ScoringError(f"not a signature: {text[:200]!r}{wrong}. Expected the form {_EXAMPLE}")

    def long(self) -> str:
        """The long form, a sentence for people."""
        intervals = (
            f"95 % intervals from {self.draws} draws of dialogues with seed {self.seed}"
            if self.draws and self.dialogues != 1
            else "no intervals"
        )
        level = {"confirm": "dialogue level, confirms only"}.get(self.level, f"{self.level} level")
        return (
            f"{level}, {self.labels} labels; {_HISTORIES.get(self.history, self.history)}; "
            f"{_DECODINGS.get(self.decoding, f'decoding: {self.decoding}')}; "
            f"the Jaccard index of two empty sets is {_shortest(self.empty_jaccard)} and 0/0 is "
            f"{_shortest(self.zero_division)}; labels outside user turns "
            f"{_ORPHANS.get(self.orphans, self.orphans)}; unusable answers "
            f"{_UNPARSED.get(self.unparsed, self.unparsed)}; macro F1 is the "
            f"{_MACRO_F1.get(self.macro_f1, self.macro_f1)}; corpus {self.corpus} with "
            f"{self.dialogues} dialogue{'s' * (self.dialogues != 1)}; {intervals}; "
            f"cradle_lib {self.version}"
        )

    def differences(self, other: Signature, *, allowed: Collection[str] = ()) -> tuple[str, ...]:
        """Names the conditions that differ, and so keep two scores from being compared.

        What is ``allowed`` to differ is what the comparison is about, such as ``("history",)``.
        """
        mine, theirs = asdict(self), asdict(other)
        free = (*allowed, *_OF_THE_SYSTEM)
        return tuple(k for k in mine if k not in free and mine[k] != theirs[k])


def conditions(line: str) -> str:
    """Takes out of a signature's line what two systems may differ in and still be compared."""
    return re.sub(r"\|dec:[^|]*", "", line)


def shared(signatures: Sequence[Signature], *, about: Collection[str] = ()) -> Signature:
    """Gives the one signature of several systems that are compared, at least one.

    It is the first one, with every value of what may differ (how answers were decoded, and what the
    comparison is ``about``), joined by a plus sign where it is a word.
    """
    first = signatures[0]
    joined: dict[str, Any] = {
        part: "+".join(sorted({getattr(signature, part) for signature in signatures}))
        for part in (*about, *_OF_THE_SYSTEM)
        if isinstance(getattr(first, part), str)
    }
    return replace(first, **joined)


def require_comparable(
    names: Sequence[str], signatures: Sequence[Signature], *, about: Collection[str] = ()
) -> Signature:
    """Gives the signature that several runs share; refuses those not scored in the same way.

    ``about`` names parts that may differ because the comparison is about them, such as
    ``("history",)``.

    Raises:
        ScoringError: Naming the runs, the part that differs and both values; or if ``about``
            names no part of a signature.
    """
    known = [field.name for field in fields(Signature)]
    for part in about:
        if part not in known:
            raise ScoringError(
                f"{part!r} is no part of a signature. Choose from {', '.join(known)}."
            )
    for name, signature in zip(names[1:], signatures[1:], strict=True):
        differing = signatures[0].differences(signature, allowed=about)
        if differing:
            parts = "; ".join(
                f"{part} is {getattr(signatures[0], part)!r} for {names[0]} and "
                f"{getattr(signature, part)!r} for {name}"
                for part in differing
            )
            raise ScoringError(
                f"these runs can't be compared: {parts}. Score both in the same way, over "
                "the same dialogues (`cradle compare --common`)."
            )
    return shared(signatures, about=about)


def signed(frame: pd.DataFrame, *signatures: Signature | str) -> pd.DataFrame:
    """Puts into a frame what its numbers depend on: ``attrs["signature"]``.

    It is one line, or a list of them where rows differ, empty where there is none: of the
    ``signatures`` given, or else of the column ``signature``, which then tells whose they are.
    """
    found = frame.get("signature", pd.Series(dtype=str)).dropna()
    lines = list(dict.fromkeys(map(str, signatures or found)))
    frame.attrs["signature"] = lines[0] if len(lines) == 1 else lines
    return frame


def _shortest(value: float) -> str:
    return repr(float(value)).removesuffix(".0")
