"""What a corpus holds, counted (Tables 2, 3, 7 and 12 of the paper).

Conventions:
    *Occurrences* count a label each time it stands on a row, on all rows (Tables 3 and 12:
    713 in the test split), or on user turns only (711 there). *Density* counts the distinct
    labels of a dialogue, on all of its rows, as Table 12 says of its own and as the paper's
    averages imply. A dialogue's *length* is its number of rows, continuations included.

    Standard deviations divide by the number of dialogues (``ddof=0``): they describe this
    corpus, and are no estimate of another one. The paper does not say which it used; at 600
    dialogues the two agree in the two decimals that it prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cradle_lib import labels
from cradle_lib.corpus.dialogue import Corpus, Dialogue
from cradle_lib.errors import CorpusError

_STAGES: Final[Mapping[labels.Stage, int]] = {
    "alert": labels.ALERT_MASK,
    "confirm": labels.CONFIRM_MASK,
}


@dataclass(frozen=True, slots=True)
class Spread:
    """How a number is spread over dialogues.

    Attributes:
        mean: The mean.
        sd: The standard deviation, divided by the number of dialogues (``ddof=0``).
        low: The smallest value.
        median: The median.
        high: The greatest value.
    """

    mean: float
    sd: float
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Statistics:
    """The counts of a corpus.

    Attributes:
        dialogues: Dialogues.
        turns: Rows.
        user_turns: Turns on which a model is asked.
        with_alert: Dialogues with at least one alert.
        with_confirm: Dialogues with at least one confirm.
        with_both: Dialogues with both.
        with_neither: Dialogues without any label.
        occurrences: How often each label stands on a row, in the order of the labels.
        user_occurrences: The same on user turns only.
        labels_per_dialogue: Distinct labels of a dialogue.
        alerts_per_dialogue: Distinct alerts of a dialogue, 0 to 2.
        confirms_per_dialogue: Distinct confirms of a dialogue, 0 to 14.
        turns_per_dialogue: Rows of a dialogue.
        lengths: Dialogues by number of rows, ascending; lengths that don't occur are left
            out.
        onsets: For each stage, dialogues by the ``turn_id`` on which their first label of
            that stage stands, ascending.
        scenarios: Dialogues by scenario, in the order of names; ``None`` if the corpus does
            not say.
        timings: Dialogues by reveal timing, early to late; ``None`` if it does not say.
    """

    dialogues: int
    turns: int
    user_turns: int
    with_alert: int
    with_confirm: int
    with_both: int
    with_neither: int
    occurrences: dict[str, int]
    user_occurrences: dict[str, int]
    labels_per_dialogue: Spread
    alerts_per_dialogue: Spread
    confirms_per_dialogue: Spread
    turns_per_dialogue: Spread
    lengths: dict[int, int]
    onsets: dict[labels.Stage, dict[int, int]]
    scenarios: dict[str, int] | None
    timings: dict[str, int] | None

    @property
    def labels(self) -> int:
        """All occurrences of all labels."""
        return sum(self.occurrences.values())

    @property
    def percent(self) -> dict[str, float]:
        """Each label's share of all occurrences, in percent; NaN without labels."""
        return {
            label: 100 * count / self.labels if self.labels else float("nan")
            for label, count in self.occurrences.items()
        }

    @property
    def ongoing_percent(self) -> float:
        """The share of occurrences that are ongoing, in percent; NaN without labels."""
        return sum(p for label, p in self.percent.items() if labels.temporal(label) == "ongoing")

    def share(self, count: int) -> float:
        """Gives a number of dialogues as percent of all."""
        return 100 * count / self.dialogues

    def by_key(self) -> dict[str, float]:
        """Names the numbers as the table of published values does.

        Returns:
            Numbers by key, such as ``corpus.dialogues``, in the unit published there. Keys
            of scenarios are present only if the corpus knows them.
        """
        found: dict[str, float] = {
            "corpus.dialogues": self.dialogues,
            "corpus.turns": self.turns,
            "corpus.user_turns": self.user_turns,
            "corpus.labels": self.labels,
            "corpus.dialogues_with_alert": self.with_alert,
            "corpus.dialogues_with_confirm": self.with_confirm,
            "corpus.dialogues_with_both": self.with_both,
            "corpus.dialogues_with_neither": self.with_neither,
            "corpus.labels_per_dialogue_mean": self.labels_per_dialogue.mean,
            "corpus.labels_per_dialogue_sd": self.labels_per_dialogue.sd,
            "corpus.alerts_per_dialogue_mean": self.alerts_per_dialogue.mean,
            "corpus.alerts_per_dialogue_sd": self.alerts_per_dialogue.sd,
            "corpus.confirms_per_dialogue_mean": self.confirms_per_dialogue.mean,
            "corpus.confirms_per_dialogue_sd": self.confirms_per_dialogue.sd,
            "corpus.ongoing_share": self.ongoing_percent,
            "corpus.mean_turns": self.turns_per_dialogue.mean,
        }
        for scenario, count in (self.scenarios or {}).items():
            found[f"scenario.{scenario}"] = count
        return found


def corpus_statistics(corpus: Corpus) -> Statistics:
    """Counts what a corpus holds.

    Args:
        corpus: Any corpus with at least one dialogue.

    Returns:
        The counts.

    Raises:
        CorpusError: If there is no dialogue, since no mean is defined then.
    """
    if not len(corpus):
        raise CorpusError(f"{corpus.name} has no dialogues, expected at least one to count")
    masks = [dialogue.mask for dialogue in corpus]
    alert = np.array([bool(mask & labels.ALERT_MASK) for mask in masks])
    confirm = np.array([bool(mask & labels.CONFIRM_MASK) for mask in masks])
    sizes = [len(dialogue.turns) for dialogue in corpus]
    return Statistics(
        dialogues=len(corpus),
        turns=len(corpus.turns),
        user_turns=len(corpus.gold),
        with_alert=int(alert.sum()),
        with_confirm=int(confirm.sum()),
        with_both=int((alert & confirm).sum()),
        with_neither=int((~alert & ~confirm).sum()),
        occurrences=_occurrences(turn.mask for turn in corpus.turns),
        user_occurrences=_occurrences(turn.mask for turn in corpus.turns if turn.asked),
        labels_per_dialogue=_spread([mask.bit_count() for mask in masks]),
        alerts_per_dialogue=_spread([(m & labels.ALERT_MASK).bit_count() for m in masks]),
        confirms_per_dialogue=_spread([(m & labels.CONFIRM_MASK).bit_count() for m in masks]),
        turns_per_dialogue=_spread(sizes),
        lengths=_counted(sizes),
        onsets={
            stage: _counted(
                onset for dialogue in corpus if (onset := _onset(dialogue, bits)) is not None
            )
            for stage, bits in _STAGES.items()
        },
        scenarios=_meta(corpus, "scenario", ()),
        timings=_meta(corpus, "timing", ("early", "mid", "late")),
    )


def _occurrences(masks: Iterable[int]) -> dict[str, int]:
    counted = Counter(label for mask in masks if mask for label in labels.labels_of(mask))
    return {label: counted[label] for label in labels.LABELS}


def _spread(values: Sequence[int]) -> Spread:
    array = np.array(values)
    return Spread(
        mean=float(array.mean()),
        sd=float(array.std(ddof=0)),
        low=float(array.min()),
        median=float(np.median(array)),
        high=float(array.max()),
    )


def _counted(values: Iterable[int]) -> dict[int, int]:
    return dict(sorted(Counter(values).items()))


def _onset(dialogue: Dialogue, bits: int) -> int | None:
    return next((turn.turn_id for turn in dialogue.turns if turn.mask & bits), None)


def _meta(corpus: Corpus, column: str, order: Sequence[str]) -> dict[str, int] | None:
    if column not in corpus.meta:
        return None
    counted = Counter(corpus.meta[column])
    names = [*order, *sorted(counted.keys() - set(order))]
    return {name: counted[name] for name in names}
