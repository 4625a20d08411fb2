"""Scores one run: all scores with their intervals, and a signature."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cradle_lib.arguments import Seed, checked, require_known
from cradle_lib.corpus.needs import unmet
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.scoring.conventions import NEEDED, Conventions, Level, align_rows
from cradle_lib.scoring.counts import Counts, count
from cradle_lib.scoring.scores import OVERALL, PER_LABEL, Scores, labels_at, scores, tallies_at
from cradle_lib.scoring.signature import Signature, signed
from cradle_lib.statistics.bootstrap import DRAWS, Estimate, bootstrap
from cradle_lib.statistics.proportions import wilson, wilson_f1
from cradle_lib.statistics.rates import Floats
from cradle_lib.version import library_version

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Evaluation:
    """The scores of one run at one level.

    Attributes:
        run: The run, restricted to the dialogues with gold labels.
        signature: The scoring settings.
        scores: The scores with their intervals, by the names of :data:`.OVERALL` and of
            :data:`.PER_LABEL`; the latter have one entry for each of :attr:`labels`. NaN if none of
            the scored labels is gold.
        counts: The counts from which the scores were computed.
        left_out: Sentences on the dialogues and gold labels of the run's corpus that are not
            scored: dialogues without gold labels, and labels on other rows than user turns.
    """

    run: Predictions
    signature: Signature
    scores: dict[str, Estimate]
    counts: Counts
    left_out: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Names the run, its dialogues, the level and the micro F1."""
        value = self.scores["micro_f1"].value
        score = "micro F1 n/a" if self.undefined_because else f"micro F1 {100 * float(value):.2f} %"
        about = f"{self.run.record.name} over {self.run.coverage}, {self.counts.level} level"
        return f"<Evaluation of {about}: {score}>"

    @property
    def undefined_because(self) -> str | None:
        """Why no score is defined at this level; ``None`` if they are."""
        if any(self.support.values()):
            return None
        if not len(self.run.corpus):
            return f"No dialogue of {self.run.record.corpus} has gold labels"
        return unmet(self.run.corpus, NEEDED[self.counts.level]) or "No label is gold"

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that were scored, in the order of the per-label scores."""
        return labels_at(self.counts.level)

    @property
    def tallies(self) -> dict[str, tuple[int, int, int]]:
        """True positives, false positives and false negatives of each label."""
        tallies = tallies_at(self.counts.total, self.counts.level)
        return {
            label: (int(tp), int(fp), int(fn))
            for label, (tp, fp, fn) in zip(self.labels, tallies, strict=True)
        }

    @property
    def support(self) -> dict[str, int]:
        """Number of gold occurrences of each label."""
        return {label: tp + fn for label, (tp, _, fn) in self.tallies.items()}

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for display below the scores: the settings, and labels that are never gold."""
        notes = [f"In words: {self.signature.long()}.", *self.left_out]
        absent = sum(not support for support in self.support.values())
        if self.undefined_because:
            notes.append(f"{self.undefined_because}: no score is defined.")
        elif absent and not self.signature.zero_division:
            notes.append(
                f"{absent} of the {len(self.labels)} labels are never gold on the scored turns: "
                "each counts as 0 in macro scores and has no F1."
            )
        return tuple(notes)

    def estimate(self, score: str, label: str | None = None) -> Estimate:
        """Looks up one score.

        Args:
            score: ``exact_match``, ``jaccard``, ``micro_f1``, ``macro_recall`` and so on; with
                a label ``precision``, ``recall`` or ``f1``.
            label: The label, for a per-label score.

        Returns:
            The score with its interval.

        Raises:
            ArgumentError: If there is no such score or label at this level.
        """
        require_known("score", score, OVERALL if label is None else PER_LABEL)
        if label is not None:
            require_known("label", label, self.labels)
        return self.scores[score].at(*[] if label is None else [self.labels.index(label)])

    def to_frame(self) -> pd.DataFrame:
        """Gives the scores as a tidy data frame.

        Returns:
            One row for each overall score, and then one for each score of each label.

            - ``system`` (str): the model's name.
            - ``level`` (str): ``turn``, ``dialogue`` or ``confirm``.
            - ``coverage`` (str): the dialogues of the run, as a heading; ``dialogues`` (int): their
              number.
            - ``unusable`` (int): answers that were unparsed, refused or failed; ``tags`` (int):
              number of predictions at this level.
            - ``label`` (str): the label; missing for overall scores.
            - ``score`` (str): a name of :data:`.OVERALL` or :data:`.PER_LABEL`.
            - ``value``, ``low``, ``high`` (float): the score and its 95 % interval, shares from 0
              to 1; Wilson's interval for a label, else the bootstrap's. NaN if undefined or not
              computed. All scores are undefined if no label is gold at this level, and those of a
              label if it is never gold, whatever ``zero_division`` is.
            - ``support``, ``tp``, ``fp``, ``fn`` (Int64): gold occurrences, true positives, false
              positives and false negatives of the label; missing for overall scores.
            - ``signature`` (str): the scoring settings, also in ``attrs["signature"]``.
        """
        import pandas as pd

        rows: list[dict[str, Any]] = [{"label": None, "score": name} for name in OVERALL]
        for label, (tp, fp, fn) in self.tallies.items():
            counts = {"support": tp + fn, "tp": tp, "fp": fp, "fn": fn}
            rows += [{"label": label, "score": name, **counts} for name in PER_LABEL]
        rows = [row | self.estimate(row["score"], row["label"])._asdict() for row in rows]
        about = {
            "system": self.run.record.name,
            "level": self.counts.level,
            "coverage": self.run.coverage,
            "dialogues": self.signature.dialogues,
            "unusable": int((~self.run.ok).sum()),
            "tags": sum(tp + fp for tp, fp, _ in self.tallies.values()),
        }
        frame = pd.DataFrame([about | row for row in rows])
        estimates, counted = ["value", "low", "high"], ["support", "tp", "fp", "fn"]
        frame[estimates] = frame[estimates].astype(float)
        frame[counted] = frame[counted].astype("Int64")
        return signed(frame.assign(signature=str(self.signature)))


@checked
def evaluate(
    predictions: Predictions,
    *,
    level: Level = "turn",
    conventions: Conventions | None = None,
    draws: int = DRAWS,
    seed: Seed = 0,
) -> Evaluation:
    """Scores a run.

    Args:
        predictions: The run's answers for every user turn of its corpus.
        level: ``turn``, ``dialogue``, or ``confirm`` (dialogue level, confirms only).
        conventions: Choices that the paper leaves open; the defaults if ``None``.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        The evaluation of the dialogues with gold labels. All scores are NaN if no label is gold,
        and those of a label if it is never gold.

    Raises:
        ScoringError: If the conventions exclude every turn, or if the number of draws is
            negative.
    """
    left_out = predictions.corpus.unlabelled_note
    conventions, predictions = conventions or Conventions(), predictions.labelled
    if conventions.orphans == "ignore":
        left_out += predictions.corpus.unasked_labels
    rows = align_rows(predictions, conventions)
    if conventions.unparsed == "exclude" and len(rows.gold) and not rows.answered.any():
        outcomes = {str(outcome): n for outcome, n in predictions.outcome_counts.items()}
        raise ScoringError(
            f"nothing to score in {predictions.corpus.name}: {len(predictions.masks)} user "
            f"turns with outcomes {outcomes}, unparsed={conventions.unparsed!r}. "
            "Score another corpus, or don't exclude unusable answers."
        )
    counts = count(rows, len(predictions.corpus), level=level, conventions=conventions)
    measured = partial(
        scores,
        level=level,
        zero_division=conventions.zero_division,
        macro_f1=conventions.macro_f1,
    )

    def overall(totals: Floats) -> dict[str, Floats]:
        return dict(zip(OVERALL, measured(totals), strict=False))

    found = bootstrap(counts.rows, overall, draws=draws, seed=seed)
    found |= _label_estimates(
        measured(counts.total), counts, intervals=draws > 0 and len(counts.rows) > 1
    )
    gold = tallies_at(counts.total, level)[:, [0, 2]].any(axis=1)
    for name, estimate in found.items():
        defined = gold if name in PER_LABEL else gold.any()
        found[name] = Estimate(*(np.where(defined, part, np.nan)[()] for part in estimate))
    signature = signature_of(predictions, conventions, level=level, draws=draws, seed=seed)
    return Evaluation(predictions, signature, found, counts, left_out)


def _label_estimates(found: Scores, counts: Counts, *, intervals: bool) -> dict[str, Estimate]:
    """Adds Wilson intervals to scores of labels; they keep their coverage for rare labels."""
    bounds = {}
    if intervals:
        tp, fp, fn = np.moveaxis(tallies_at(counts.rows, counts.level), -1, 0)
        bounds = {
            "precision": wilson(tp, tp + fp),
            "recall": wilson(tp, tp + fn),
            "f1": wilson_f1(tp, fp + fn),
        }
    undefined = (np.full_like(found.f1, np.nan),) * 2
    return {
        name: Estimate(getattr(found, name), *bounds.get(name, undefined)) for name in PER_LABEL
    }


def signature_of(
    predictions: Predictions,
    conventions: Conventions | None = None,
    *,
    level: Level = "turn",
    draws: int = 0,
    seed: int = 0,
) -> Signature:
    """Gives the signature of a score of this run, with all settings that it depends on."""
    record = predictions.record
    return Signature(
        level=level,
        labels=len(labels_at(level)),
        history=record.history,
        decoding=record.decoding.get("mode") or "free",
        **asdict(conventions or Conventions()),
        corpus=predictions.corpus.fingerprint,
        dialogues=len(predictions.corpus),
        draws=draws,
        seed=seed,
        version=library_version(),
    )
