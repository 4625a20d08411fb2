"""Adjudicates annotations to gold labels, with an audit trail of who gave which label.

The rules of the vote, and the cases that it leaves to the senior, are in
:mod:`cradle_lib.annotation.voting`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import pandas as pd

from cradle_lib.annotation.table import ROLES, Annotation, Annotations
from cradle_lib.annotation.voting import Masks, Outcome, decide, left_open, outcome_of
from cradle_lib.arguments import checked
from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.errors import CorpusError
from cradle_lib.labels import BITS, LABELS, labels_of, union

By = Literal["agreement", "majority", "senior"]


def voters_of(entries: Sequence[Annotation]) -> list[Annotation]:
    """Gives the votes on a dialogue: two annotators, then adjudicator and senior if they differ.

    Raises:
        CorpusError: If there are not exactly two annotators, a role occurs twice, or there is a
            senior without an adjudicator.
    """
    found = sorted(entries, key=lambda entry: (ROLES.index(entry.role), entry.annotator))
    if len(found) < 2 or [entry.role for entry in found] != ["annotator", *ROLES][: len(found)]:
        who = ", ".join(f"{entry.role} {entry.annotator}" for entry in found)
        raise CorpusError(
            f"dialogue {entries[0].dialogue}: labelled by {who}; expected two annotators, then an "
            "adjudicator if they differ, then a senior. Import all exports of the study."
        )
    return found[:2] if found[0].masks == found[1].masks else found


def open_turns(voters: Sequence[Annotation]) -> tuple[int, ...]:
    """Gives the ids of the turns that the votes leave open for the next voter.

    After two votes, these are all turns on which the annotators differ. After three, they are the
    turns that the vote leaves to the senior; after four, there are none.
    """
    votes = [voter.masks for voter in voters]
    if len(votes) == 2:
        pairs = enumerate(zip(*votes, strict=True))
        return tuple(turn for turn, (one, other) in pairs if one != other)
    if len(votes) == 4:
        return ()
    turns = enumerate(zip(*votes, left_open(*votes), strict=True))
    return tuple(turn for turn, (a, b, c, undecided) in turns if (a | b | c) & undecided)


@dataclass(frozen=True)
class Adjudication:
    """The result of adjudicating a corpus.

    Attributes:
        annotations: The annotations that were adjudicated.
        gold: The gold masks of each dialogue's turns, by id.
        outcomes: The category of each dialogue, by id.
        trail: The rows of :meth:`audit`.
    """

    annotations: Annotations
    gold: Mapping[str, tuple[int, ...]]
    outcomes: Mapping[str, Outcome]
    trail: tuple[tuple[object, ...], ...]

    @property
    def counts(self) -> dict[Outcome, int]:
        """Number of dialogues in each category, all categories listed."""
        found = Counter(self.outcomes.values())
        return {outcome: found[outcome] for outcome in Outcome}

    def corpus(self) -> Corpus:
        """Gives the corpus with the adjudicated labels as gold labels.

        Raises:
            CorpusError: If some of its dialogues were not annotated.
        """
        source = self.annotations.corpus
        missing = [dialogue.id for dialogue in source if dialogue.id not in self.gold]
        if missing:
            raise CorpusError(
                f"{len(missing)} of {len(source)} dialogues have no annotation, the first is "
                f"{missing[0]}. Import the exports of all rounds."
            )
        return replace(source, dialogues=tuple(d.relabelled(self.gold[d.id]) for d in source))

    def to_frame(self) -> pd.DataFrame:
        """Gives the outcome of each dialogue as a tidy data frame.

        Returns:
            One row for each annotated dialogue.

            - ``dialogue``, ``team`` (str); ``round`` (int).
            - ``outcome`` (categorical): an :class:`.Outcome`.
        """
        first = {name: entries[0] for name, entries in self.annotations.by_dialogue.items()}
        rows = [
            (name, first[name].team, first[name].round, str(outcome))
            for name, outcome in self.outcomes.items()
        ]
        frame = pd.DataFrame(rows, columns=["dialogue", "team", "round", "outcome"])
        frame["outcome"] = pd.Categorical(frame["outcome"], [str(one) for one in Outcome])
        return frame.astype({"dialogue": str, "team": str, "round": int})

    def audit(self) -> pd.DataFrame:
        """Gives the audit trail as a tidy data frame.

        Returns:
            One row for each label that anybody gave to a turn.

            - ``dialogue`` (str); ``turn_id`` (int, from 0); ``label`` (categorical).
            - ``result`` (str): ``gold`` or ``rejected``.
            - ``by`` (categorical): who decided: ``senior`` (the label or its turn was open), else
              ``agreement`` (both annotators gave it) or ``majority``.
            - ``voters`` (str): who gave it, separated by spaces, in the order annotators,
              adjudicator, senior; ``outcome`` (str): the outcome of the dialogue.
        """
        columns = ["dialogue", "turn_id", "label", "result", "by", "voters", "outcome"]
        frame = pd.DataFrame(self.trail, columns=columns)
        frame["label"] = pd.Categorical(frame["label"], LABELS)
        frame["by"] = pd.Categorical(frame["by"], get_args(By))
        return frame


@checked
def adjudicate(annotations: Annotations) -> Adjudication:
    """Adjudicates every annotated dialogue.

    Args:
        annotations: Two annotators for each dialogue; an adjudicator if they differ; a senior if
            the vote of three leaves turns open.

    Returns:
        Gold labels, outcomes and the audit trail. The order of votes does not matter. A label that
        all gave on a turn is always gold; a label that nobody gave there never is.

    Raises:
        CorpusError: If a vote is missing; the message names the role.
    """
    gold: dict[str, tuple[int, ...]] = {}
    outcomes: dict[str, Outcome] = {}
    trail: list[tuple[object, ...]] = []
    for name, entries in annotations.by_dialogue.items():
        voters = voters_of(entries)
        if turns := open_turns(voters):
            who = "nobody has adjudicated" if len(voters) == 2 else "no senior has decided"
            raise CorpusError(
                f"dialogue {name}: {', '.join(voter.annotator for voter in voters)} leave turns "
                f"{', '.join(map(str, turns))} open, and {who}. Write the next tasks with "
                "`cradle annotate export --after`."
            )
        votes = [voter.masks for voter in voters]
        # Fill in votes that can't change the result: of an adjudicator if the annotators agree, and
        # of a senior if nothing is open.
        one, two, three = [*votes, votes[0]][:3]
        final, outcomes[name] = decide(one, two, three, votes[-1]), outcome_of(one, two, three)
        gold[name] = tuple(final)
        trail += _trail(voters, final, left_open(one, two, three), outcomes[name])
    return Adjudication(annotations, gold, outcomes, tuple(trail))


def _trail(
    voters: Sequence[Annotation], final: Masks, left: Masks, outcome: Outcome
) -> Iterator[tuple[object, ...]]:
    for turn, (mask, undecided) in enumerate(zip(final, left, strict=True)):
        both = voters[0].masks[turn] & voters[1].masks[turn]
        for label in labels_of(union(voter.masks[turn] for voter in voters)):
            bit = BITS[label]
            by: By = "senior" if bit & undecided else "agreement" if bit & both else "majority"
            names = " ".join(voter.annotator for voter in voters if voter.masks[turn] & bit)
            result = "gold" if mask & bit else "rejected"
            yield voters[0].dialogue, turn, label, result, by, names, str(outcome)
