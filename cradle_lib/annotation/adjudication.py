"""From two annotations to gold: a third vote, a senior, and a trail of who gave what.

The procedure, as the paper gives it: where the two annotators of a dialogue differ, an expert
of the other team labels it without sight of theirs, and the majority of the three decides.
If all three differ, the senior clinician decides. How a vote is taken, and when it leaves
something to the senior, is in :mod:`cradle_lib.annotation.voting`.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Sec 3.2 and Appendix B.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, get_args

import pandas as pd

from cradle_lib.annotation.table import Annotation, Annotations
from cradle_lib.annotation.voting import (
    Masks,
    Open,
    Outcome,
    decide,
    open_between,
    outcome_of,
    union,
)
from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.errors import AnnotationError
from cradle_lib.labels import BITS, LABELS, labels_of

By = Literal["agreement", "majority", "senior"]
# What came of the two annotations, of the vote, and of what it left to the senior.
_STAGES: Final[Mapping[Outcome, tuple[str | None, str | None, str | None]]] = {
    Outcome.EXACT: ("exact agreement", None, None),
    Outcome.RESOLVED: ("mismatch", "resolved 2:1", None),
    Outcome.SAME_LABELS_3: ("mismatch", "final mismatch", "labels agree 3:0"),
    Outcome.SAME_LABELS_2: ("mismatch", "final mismatch", "labels agree 2:1"),
    Outcome.CONFLICT: ("mismatch", "final mismatch", "turn conflict"),
}


@dataclass(frozen=True, slots=True)
class Dispute:
    """The votes on one dialogue.

    Attributes:
        first: One annotator.
        second: The other one.
        adjudicator: The expert of the other team, if there has been one.
        senior: The senior, if there has been one.
    """

    first: Annotation
    second: Annotation
    adjudicator: Annotation | None = None
    senior: Annotation | None = None

    @property
    def turns(self) -> tuple[int, ...]:
        """Numbers of the turns on which the two annotators differ."""
        pairs = zip(self.first.masks, self.second.masks, strict=True)
        return tuple(turn for turn, (one, other) in enumerate(pairs) if one != other)

    @property
    def agreed(self) -> bool:
        """Whether the two annotators gave the same labels to every turn."""
        return self.first.masks == self.second.masks

    @property
    def three(self) -> tuple[Annotation, Annotation, Annotation]:
        """The three voters.

        Raises:
            AnnotationError: If nobody has adjudicated yet.
        """
        if self.adjudicator is None:
            raise AnnotationError(
                f"dialogue {self.first.dialogue}: {self.first.annotator} and "
                f"{self.second.annotator} differ on turns {_numbers(self.turns)}, and nobody has "
                "adjudicated. Write the next tasks with `cradle annotate export --after`."
            )
        return self.first, self.second, self.adjudicator


def dispute(entries: Sequence[Annotation]) -> Dispute:
    """Sorts the annotations of one dialogue by role.

    Raises:
        AnnotationError: If there are not exactly two annotators, or more than one
            adjudicator or senior.
    """
    by_role: dict[str, list[Annotation]] = {"annotator": [], "adjudicator": [], "senior": []}
    for entry in entries:
        by_role[entry.role].append(entry)
    pair = sorted(by_role["annotator"], key=lambda entry: entry.annotator)
    for role, most in (("annotator", 2), ("adjudicator", 1), ("senior", 1)):
        found = by_role[role]
        if len(found) > most or (role == "annotator" and len(found) < most):
            names = ", ".join(entry.annotator for entry in found) or "nobody"
            raise AnnotationError(
                f"dialogue {entries[0].dialogue}: {role}: {names}; expected {most}. "
                "Import all exports of the study."
            )
    third, senior = by_role["adjudicator"], by_role["senior"]
    return Dispute(pair[0], pair[1], third[0] if third else None, senior[0] if senior else None)


def open_places(state: Dispute) -> Open:
    """Finds what the vote on a dialogue leaves open.

    Raises:
        AnnotationError: If nobody has adjudicated yet.
    """
    one, two, three = state.three
    return open_between(one.masks, two.masks, three.masks)


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about one label on one turn, and who had given it there.

    Attributes:
        dialogue: Id of the dialogue.
        turn_id: The turn.
        label: The label.
        voters: Who gave it, in the order annotators, adjudicator, senior.
        by: ``agreement`` (everybody gave it, or both annotators and nothing is open there),
            ``senior`` (it or its turn was open) or ``majority``.
        gold: Whether it became gold.
    """

    dialogue: str
    turn_id: int
    label: str
    voters: tuple[str, ...]
    by: By
    gold: bool


@dataclass(frozen=True)
class Adjudication:
    """The result of adjudicating a corpus.

    Attributes:
        annotations: What was adjudicated.
        gold: The masks of every dialogue's turns, by id.
        outcomes: The category of every dialogue, by id.
        decisions: The audit trail: everything that anybody gave.
    """

    annotations: Annotations
    gold: Mapping[str, tuple[int, ...]]
    outcomes: Mapping[str, Outcome]
    decisions: tuple[Decision, ...]

    @cached_property
    def counts(self) -> dict[Outcome, int]:
        """Number of dialogues in each category, all categories listed."""
        found = Counter(self.outcomes.values())
        return {outcome: found[outcome] for outcome in Outcome}

    def corpus(self) -> Corpus:
        """Gives the corpus with the decided labels in place of its own.

        Raises:
            AnnotationError: If some of its dialogues were not annotated.
        """
        source = self.annotations.corpus
        missing = [dialogue.id for dialogue in source if dialogue.id not in self.gold]
        if missing:
            raise AnnotationError(
                f"{len(missing)} of {len(source)} dialogues have no annotation, the first is "
                f"{missing[0]}. Import the exports of all rounds."
            )
        dialogues = tuple(
            replace(
                dialogue,
                turns=tuple(
                    replace(turn, mask=mask)
                    for turn, mask in zip(dialogue.turns, self.gold[dialogue.id], strict=True)
                ),
            )
            for dialogue in source
        )
        return replace(source, dialogues=dialogues)

    def to_frame(self) -> pd.DataFrame:
        """Says how each dialogue ended, as a tidy data frame.

        Returns:
            One row for each annotated dialogue.

            - ``dialogue``, ``team`` (str); ``round`` (int).
            - ``outcome`` (categorical): an :class:`.Outcome`.
            - ``annotations``, ``vote``, ``senior`` (categorical): the same by its stages: what
              came of the two annotations, of the vote of three, and of what it left to the
              senior. Missing for a dialogue that was decided before.
        """
        entries = {name: of[0] for name, of in self.annotations.by_dialogue.items()}
        frame = pd.DataFrame(
            {
                "dialogue": pd.Series([*self.outcomes], dtype=str),
                "team": pd.Series([entries[name].team for name in self.outcomes], dtype=str),
                "round": pd.Series([entries[name].round for name in self.outcomes], dtype=int),
                "outcome": pd.Categorical(
                    [str(found) for found in self.outcomes.values()], [str(one) for one in Outcome]
                ),
            }
        )
        for place, stage in enumerate(("annotations", "vote", "senior")):
            steps = [_STAGES[outcome][place] for outcome in self.outcomes.values()]
            usual = dict.fromkeys(step for one in _STAGES.values() if (step := one[place]))
            frame[stage] = pd.Categorical(steps, [*usual])
        return frame

    def audit(self) -> pd.DataFrame:
        """Gives the audit trail as a tidy data frame.

        Returns:
            One row for each label that anybody gave to a turn.

            - ``dialogue`` (str); ``turn_id`` (int, from 0); ``label`` (categorical).
            - ``result`` (str): ``gold`` or ``rejected``; ``by`` (categorical): who decided, see
              :class:`Decision`.
            - ``voters`` (str): who gave it, separated by spaces; ``outcome`` (str): how the
              dialogue ended.
        """
        frame = pd.DataFrame(
            [
                (
                    item.dialogue,
                    item.turn_id,
                    item.label,
                    "gold" if item.gold else "rejected",
                    item.by,
                    " ".join(item.voters),
                    str(self.outcomes[item.dialogue]),
                )
                for item in self.decisions
            ],
            columns=["dialogue", "turn_id", "label", "result", "by", "voters", "outcome"],
        )
        frame["label"] = pd.Categorical(frame["label"], LABELS)
        frame["by"] = pd.Categorical(frame["by"], get_args(By))
        return frame


def adjudicate(annotations: Annotations) -> Adjudication:
    """Adjudicates every annotated dialogue.

    Args:
        annotations: Two annotators for each dialogue; an adjudicator where they differ; a
            senior where the vote leaves something open.

    Returns:
        Gold labels, outcomes and the audit trail. Nobody's vote weighs more for the order
        in which it came, a label that all gave on a turn stays, and one that nobody gave
        there is never gold.

    Raises:
        AnnotationError: If a vote is missing; the message says whose.
    """
    gold: dict[str, tuple[int, ...]] = {}
    outcomes: dict[str, Outcome] = {}
    decisions: list[Decision] = []
    for name, entries in annotations.by_dialogue.items():
        state = dispute(entries)
        if state.agreed:
            final, outcome, left = list(state.first.masks), Outcome.EXACT, Open((), 0, ())
        else:
            one, two, three = (voter.masks for voter in state.three)
            left = open_between(one, two, three)
            if left and state.senior is None:
                raise AnnotationError(
                    f"dialogue {name}: the vote of {_names(state.three)} leaves turns "
                    f"{_numbers(left.turns)} open, and no senior has decided. Write the next "
                    "tasks with `cradle annotate export --after`."
                )
            senior = state.senior.masks if state.senior is not None else (0,) * len(one)
            final, outcome = decide(one, two, three, senior), outcome_of(one, two, three)
        gold[name], outcomes[name] = tuple(final), outcome
        decisions += _decisions(state, final, left)
    return Adjudication(annotations, gold, outcomes, tuple(decisions))


def _decisions(state: Dispute, final: Masks, left: Open) -> list[Decision]:
    voters = [state.first, state.second]
    if not state.agreed:
        voters += [voter for voter in (state.adjudicator, state.senior) if voter is not None]
    found = []
    for turn, mask in enumerate(final):
        both = state.first.masks[turn] & state.second.masks[turn]
        # The senior's is no vote: what all who voted gave is gold without it.
        everybody = both if state.agreed else both & state.three[2].masks[turn]
        for label in labels_of(union([voter.masks[turn] for voter in voters])):
            bit = BITS[label]
            by: By = "majority"
            if bit & everybody:
                by = "agreement"
            elif turn in left.sets or bit & left.labels:
                by = "senior"
            elif bit & both:
                by = "agreement"
            names = tuple(voter.annotator for voter in voters if voter.masks[turn] & bit)
            decision = Decision(state.first.dialogue, turn, label, names, by, bool(mask & bit))
            found.append(decision)
    return found


def _names(voters: Sequence[Annotation]) -> str:
    return ", ".join(voter.annotator for voter in voters)


def _numbers(turns: Sequence[int]) -> str:
    return ", ".join(map(str, turns))
