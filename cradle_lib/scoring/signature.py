"""The signature: one line with all settings that a score depends on.

Two scores may be compared only if they were computed under the same conditions, so their signatures
must agree. The exception is decoding, which is a property of the system: a model with constrained
decoding is another system than the same model with free decoding. Both may be in one table, and
their signatures differ.

The idea is sacreBLEU's (Post, "A Call for Clarity in Reporting BLEU Scores", 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from cradle_lib.errors import ScoringError

if TYPE_CHECKING:
    import pandas as pd

_SHORT: Final = (
    "cradle|lvl:{level}|labels:{labels}|hist:{history}|dec:{decoding}|empty:{empty_jaccard}|"
    "zd:{zero_division}|orphans:{orphans}|unparsed:{unparsed}|macro:{macro_f1}|corpus:{corpus}|"
    "n:{dialogues}|boot:{draws}@{seed}|v{version}"
)
_LONG: Final = (
    "{level}, {labels} labels; {history}; {decoding}; the Jaccard index of two empty sets is "
    "{empty_jaccard} and 0/0 is {zero_division}; labels outside user turns {orphans}; unusable "
    "answers {unparsed}; macro F1 is the {macro_f1}; corpus {corpus} with {dialogues} "
    "dialogue{plural}; {intervals}; cradle_lib {version}"
)
# Wording of some values in the long form.
_WORDS: Final = {
    ("level", "turn"): "turn level",
    ("level", "dialogue"): "dialogue level",
    ("level", "confirm"): "dialogue level, confirms only",
    ("history", "self"): "the model saw its own earlier predictions",
    ("history", "gold"): "the model saw the gold labels of earlier turns",
    ("history", "none"): "the model saw no earlier labels",
    ("decoding", "free"): "free decoding",
    ("decoding", "constrained"): "constrained decoding, which permits only valid answers",
    ("orphans", "ignore"): "are ignored",
    ("orphans", "attach"): "move to the previous user turn",
    ("orphans", "count"): "count as misses",
    ("unparsed", "miss"): "count as no prediction and are never correct",
    ("unparsed", "none"): "count as no crisis",
    ("unparsed", "exclude"): "are left out with their turns",
    ("macro_f1", "mean"): "mean of the labels' F1",
    ("macro_f1", "harmonic"): "harmonic mean of macro precision and macro recall",
}


@dataclass(frozen=True, slots=True)
class Signature:
    """The settings that a score depends on.

    ``labels`` is the number of scored labels. ``history`` says whose labels the model saw for
    earlier turns. ``decoding`` is ``free`` or ``constrained``, or both with a plus sign between
    them for systems of both kinds. ``corpus`` is a fingerprint, ``draws`` is 0 without intervals,
    and ``version`` is this library's. The rest is as in :class:`.Conventions`.
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
        return _SHORT.format(**self._written())

    def long(self) -> str:
        """The long form, a sentence for people."""
        words = {part: _WORDS.get((part, text), text) for part, text in self._written().items()}
        intervals = "no intervals"
        if self.draws and self.dialogues != 1:
            intervals = (
                f"95 % bootstrap intervals of overall scores, {self.draws:,} draws of dialogues "
                f"with seed {self.seed}"
            )
        plural = "s" * (self.dialogues != 1)
        return _LONG.format(**words, plural=plural, intervals=intervals)

    def _written(self) -> dict[str, Any]:
        """Gives each part by its name; floats as text, without a final ``.0``."""
        values = asdict(self)
        for name in ("empty_jaccard", "zero_division"):
            values[name] = repr(float(values[name])).removesuffix(".0")
        return values


def require_comparable(names: Sequence[str], signatures: Sequence[Signature]) -> Signature:
    """Gives the signature that several runs share; refuses runs that can't be compared.

    The shared signature is the first one, with every decoding, joined by a plus sign.

    Raises:
        ScoringError: Naming the runs, the part that differs and both values.
    """
    if not signatures:
        raise ScoringError("there is no run to score. Give at least one.")
    # Systems may differ in decoding and still be compared.
    first, *others = (asdict(replace(signature, decoding="")) for signature in signatures)
    for name, other in zip(names[1:], others, strict=True):
        mismatches = "; ".join(
            f"{part} is {first[part]!r} for {names[0]} and {other[part]!r} for {name}"
            for part in first
            if first[part] != other[part]
        )
        if mismatches:
            raise ScoringError(
                f"these runs can't be compared: {mismatches}. Score both in the same way, over "
                "the same dialogues (`cradle compare --common`)."
            )
    return replace(signatures[0], decoding="+".join(sorted({one.decoding for one in signatures})))


def signed(frame: pd.DataFrame, *signatures: Signature | str) -> pd.DataFrame:
    """Stores the signatures of a frame's numbers in ``attrs["signature"]``.

    They are the ``signatures`` given, or else those of the column ``signature``. A single signature
    is stored as text, none or several different ones as a list.
    """
    import pandas as pd

    found = frame.get("signature", pd.Series(dtype=str)).dropna()
    lines = list(dict.fromkeys(map(str, signatures or found)))
    frame.attrs["signature"] = lines[0] if len(lines) == 1 else lines
    return frame
