"""The vote of three on one dialogue, and what it leaves open.

The procedure, as the paper gives it: where the two annotators of a dialogue differ, an expert
of the other team labels it without sight of theirs, and the majority of the three decides.
If all three differ, the senior clinician decides.

The paper does not say what "all three differ" means where a turn carries sets of labels and
an event may be put on one turn or another. Here the vote is taken for each turn and label, and
it leaves two things open:

* a *turn* on which the three label sets are all different;
* a *label* that at least two of the three gave in this dialogue, but no two of them on the
  same turn: they agree that it is there, and not where. Without this rule a vote by turns
  would drop what everybody saw.

The senior's labels replace the vote on open turns and for open labels, and nowhere else. A
label that all three gave on the same turn survives even there.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Sec 3.2 and Appendix B.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

Masks = Sequence[int]


class Outcome(StrEnum):
    """What became of a dialogue: the categories of the paper's Appendix B.3."""

    EXACT = "exact agreement"
    RESOLVED = "resolved 2:1"
    SAME_LABELS_3 = "final mismatch, labels agree 3:0"
    SAME_LABELS_2 = "final mismatch, labels agree 2:1"
    CONFLICT = "final mismatch, turn conflict"


#: Under ``adjudication.{key}`` the paper states how many dialogues ended in each category.
OUTCOME_KEYS: Final[Mapping[Outcome, str]] = {
    Outcome.EXACT: "exact_agreement",
    Outcome.RESOLVED: "resolved_by_majority",
    Outcome.SAME_LABELS_3: "final_label_agreement_position_differs_3_0",
    Outcome.SAME_LABELS_2: "final_label_agreement_position_differs_2_1",
    Outcome.CONFLICT: "final_turn_conflict",
}


@dataclass(frozen=True, slots=True)
class Open:
    """What a vote leaves open.

    Attributes:
        sets: Numbers of the turns on which all three label sets differ.
        labels: Mask of the labels whose position is open.
        turns: Numbers of all turns concerned.
    """

    sets: tuple[int, ...]
    labels: int
    turns: tuple[int, ...]

    def __bool__(self) -> bool:
        """Whether anything is open."""
        return bool(self.sets or self.labels)


def vote(one: Masks, two: Masks, three: Masks) -> list[int]:
    """Takes the majority of three for each turn and label.

    Args:
        one: Masks of one voter, one for each of T turns.
        two: Those of the second.
        three: Those of the third.

    Returns:
        T masks of the labels that two or three gave to the turn.
    """
    return [a & b | a & c | b & c for a, b, c in zip(one, two, three, strict=True)]


def open_between(one: Masks, two: Masks, three: Masks) -> Open:
    """Finds what the majority of three leaves open, as the module says.

    Args:
        one: Masks of one voter, one for each turn.
        two: Those of the second.
        three: Those of the third.

    Returns:
        The open turns and labels; false if there are none.
    """
    voters = (one, two, three)
    sets = tuple(
        turn for turn, given in enumerate(zip(*voters, strict=True)) if len(set(given)) == 3
    )
    wholes = [union(masks) for masks in voters]
    labels = vote([wholes[0]], [wholes[1]], [wholes[2]])[0] & ~union(vote(*voters))
    turns = [
        turn
        for turn, (a, b, c) in enumerate(zip(*voters, strict=True))
        if turn in sets or (a | b | c) & labels
    ]
    return Open(sets, labels, tuple(turns))


def decide(one: Masks, two: Masks, three: Masks, senior: Masks) -> list[int]:
    """Decides every turn: the majority of three, and the senior where that leaves it open.

    Args:
        one: Masks of one voter, one for each of T turns.
        two: Those of the second.
        three: Those of the third.
        senior: Those of the senior, who has labelled every turn.

    Returns:
        T masks.
    """
    left = open_between(one, two, three)
    final = vote(one, two, three)
    for turn in left.sets:
        final[turn] = senior[turn] | one[turn] & two[turn] & three[turn]
    return [mask & ~left.labels | senior[turn] & left.labels for turn, mask in enumerate(final)]


def outcome_of(one: Masks, two: Masks, three: Masks | None) -> Outcome:
    """Names the category of a dialogue.

    Args:
        one: Masks of one annotator.
        two: Masks of the other.
        three: Masks of the adjudicator; ``None`` if the two are equal.

    Returns:
        The category. Final mismatches are told apart by the sets of labels that the three
        gave to the dialogue as a whole: all the same, two the same, none the same.
    """
    if three is None or list(one) == list(two):
        return Outcome.EXACT
    if not open_between(one, two, three):
        return Outcome.RESOLVED
    different = len({union(one), union(two), union(three)})
    return (Outcome.SAME_LABELS_3, Outcome.SAME_LABELS_2, Outcome.CONFLICT)[different - 1]


def union(masks: Masks) -> int:
    """Joins the labels of several turns.

    Args:
        masks: Any number of masks.

    Returns:
        One mask with every label that occurs; 0 for no turn.
    """
    whole = 0
    for mask in masks:
        whole |= mask
    return whole
