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
from enum import StrEnum
from typing import Final

from cradle_lib.labels import ALL_MASK, union

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


def vote(one: Masks, two: Masks, three: Masks) -> list[int]:
    """Takes the majority of three for each turn and label."""
    return [a & b | a & c | b & c for a, b, c in zip(one, two, three, strict=True)]


def left_open(one: Masks, two: Masks, three: Masks) -> list[int]:
    """Finds what the majority of three leaves to the senior, as the module says.

    Gives a mask for each turn, all of them 0 where nothing is open: the labels whose position is
    open, and on an open turn all but those that all three gave there.
    """
    wholes = ([union(masks)] for masks in (one, two, three))
    nowhere = union(vote(*wholes)) & ~union(vote(one, two, three))
    return [
        nowhere | (ALL_MASK & ~(a & b & c) if len({a, b, c}) == 3 else 0)
        for a, b, c in zip(one, two, three, strict=True)
    ]


def decide(one: Masks, two: Masks, three: Masks, senior: Masks) -> list[int]:
    """Decides every turn: the majority of three, and the senior where that leaves it open."""
    votes, left = vote(one, two, three), left_open(one, two, three)
    return [v & ~free | s & free for v, s, free in zip(votes, senior, left, strict=True)]


def outcome_of(one: Masks, two: Masks, three: Masks) -> Outcome:
    """Names the category of a dialogue, from the votes of two annotators and the adjudicator.

    Final mismatches are told apart by the sets of labels that the three gave to the dialogue as a
    whole: all the same, two the same, none the same.
    """
    if list(one) == list(two):
        return Outcome.EXACT
    if not any(left_open(one, two, three)):
        return Outcome.RESOLVED
    different = len({union(one), union(two), union(three)})
    return (Outcome.SAME_LABELS_3, Outcome.SAME_LABELS_2, Outcome.CONFLICT)[different - 1]
