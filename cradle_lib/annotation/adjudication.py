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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, get_args

import pandas as pd

from cradle_lib.annotation.table import ROLES, Annotation, Annotations
from cradle_lib.annotation.voting import Masks, Outcome, decide, left_open, outcome_of
from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.errors import AnnotationError
from cradle_lib.labels import BITS, LABELS, labels_of, union

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

    @property
    def open_turns(self) -> tuple[int, ...]:
        """Numbers of the turns about which the vote of three leaves something open."""
        votes = [voter.masks for voter in self.three]
        given = zip(*votes, left_open(*votes), strict=True)
        return tuple(t for t, (a, b, c, free) in enumerate(given) if (a | b | c) & free)


def dispute(entries: Sequence[Annotation]) -> Dispute:
    """Sorts the annotations of one dialogue by role.

    Raises:
        AnnotationError: If there are not exactly two annotators, or more than one
            adjudicator or senior.
    """
    by_role: dict[str, list[Annotation]] = {role: [] for role in ROLES}
    for entry in sorted(entries, key=lambda entry: entry.annotator):
        by_role[entry.role].append(entry)
    for role, fewest, most in (("annotator", 2, 2), ("adjudicator", 0, 1), ("senior", 0, 1)):
        found = by_role[role]
        if not fewest <= len(found) <= most:
            names = ", ".join(entry.annotator for entry in found) or "nobody"
            raise AnnotationError(
                f"dialogue {entries[0].dialogue}: {role}: {names}; expected {most}. "
                "Import all exports of the study."
            )
    adjudicator, senior = (next(iter(by_role[role]), None) for role in ("adjudicator", "senior"))
    return Dispute(*by_role["annotator"], adjudicator, senior)


@dataclass(frozen=True)
class Adjudication:
    """The result of adjudicating a corpus.

    Attributes:
        annotations: What was adjudicated.
        gold: The masks of every dialogue's turns, by id.
        outcomes: The category of every dialogue, by id.
        trail: The audit trail: everything that anybody gave, in the columns of :meth:`audit`.
    """

    annotations: Annotations
    gold: Mapping[str, tuple[int, ...]]
    outcomes: Mapping[str, Outcome]
    trail: tuple[tuple[object, ...], ...]

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
        return replace(source, dialogues=tuple(d.relabelled(self.gold[d.id]) for d in source))

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
        first = [self.annotations.by_dialogue[name][0] for name in self.outcomes]
        frame = pd.DataFrame(
            {
                "dialogue": pd.Series([*self.outcomes], dtype=str),
                "team": pd.Series([entry.team for entry in first], dtype=str),
                "round": pd.Series([entry.round for entry in first], dtype=int),
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
            - ``result`` (str): ``gold`` or ``rejected``.
            - ``by`` (categorical): who decided. ``agreement`` (everybody gave it, or both
              annotators and nothing is open there), ``senior`` (it or its turn was open) or
              ``majority``.
            - ``voters`` (str): who gave it, separated by spaces, in the order annotators,
              adjudicator, senior; ``outcome`` (str): how the dialogue ended.
        """
        columns = ["dialogue", "turn_id", "label", "result", "by", "voters", "outcome"]
        frame = pd.DataFrame(self.trail, columns=columns)
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
    trail: list[tuple[object, ...]] = []
    for name, entries in annotations.by_dialogue.items():
        state = dispute(entries)
        if state.agreed:
            voters, third = [state.first, state.second], None
            final, left = [*state.first.masks], [0] * len(state.first.masks)
        else:
            one, two, third = (voter.masks for voter in state.three)
            if state.open_turns and state.senior is None:
                raise AnnotationError(
                    f"dialogue {name}: the vote of {_names(state.three)} leaves turns "
                    f"{_numbers(state.open_turns)} open, and no senior has decided. Write the "
                    "next tasks with `cradle annotate export --after`."
                )
            voters = [*state.three, *([state.senior] if state.senior else [])]
            # Where nothing is open nobody's masks are looked at.
            final, left = decide(one, two, third, voters[-1].masks), left_open(one, two, third)
        gold[name] = tuple(final)
        outcomes[name] = outcome_of(state.first.masks, state.second.masks, third)
        trail += _trail(voters, final, left, outcomes[name])
    return Adjudication(annotations, gold, outcomes, tuple(trail))


def _trail(
    voters: Sequence[Annotation], final: Masks, left: Masks, outcome: Outcome
) -> Iterator[tuple[object, ...]]:
    for turn, (mask, free) in enumerate(zip(final, left, strict=True)):
        both = voters[0].masks[turn] & voters[1].masks[turn]
        for label in labels_of(union(voter.masks[turn] for voter in voters)):
            bit = BITS[label]
            by: By = "senior" if bit & free else "agreement" if bit & both else "majority"
            names = " ".join(voter.annotator for voter in voters if voter.masks[turn] & bit)
            result = "gold" if mask & bit else "rejected"
            yield voters[0].dialogue, turn, label, result, by, names, str(outcome)


def _names(voters: Sequence[Annotation]) -> str:
    return ", ".join(voter.annotator for voter in voters)


def _numbers(turns: Sequence[int]) -> str:
    return ", ".join(map(str, turns))
