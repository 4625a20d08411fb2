"""The vote of three on one dialogue, and the cases that it leaves to the senior.

The procedure, as the paper gives it: where the two annotators of a dialogue differ, an expert of
the other team labels it without seeing their labels, and the majority of the three decides. If all
three differ, the senior clinician decides.

The paper does not say what "all three differ" means if turns have sets of labels and an event can
be labelled on different turns. Here the vote is taken for each turn and label, and it leaves two
cases open:

* a *turn* on which the three label sets are all different;
* a *label* that at least two of the three gave in this dialogue, but no two of them on the same
  turn: they agree on the label but not on its turn. Without this rule a vote by turns would drop
  the label.

The senior's labels replace the vote on open turns and for open labels, and nowhere else. A label
that all three gave on the same turn is always kept.

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
    """The outcome of a dialogue, in the categories of the paper's Appendix B.3."""

    EXACT = "exact agreement"
    RESOLVED = "resolved 2:1"
    SAME_LABELS_3 = "final mismatch, labels agree 3:0"
    SAME_LABELS_2 = "final mismatch, labels agree 2:1"
    CONFLICT = "final mismatch, turn conflict"


#: Keys of the published numbers of dialogues in each category, after ``adjudication.``.
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
    """Finds the labels that the vote of three leaves to the senior, as the module describes.

    Gives a mask for each turn: the open labels, and on an open turn all labels except those that
    all three gave there.
    """
    of_dialogue = ([union(masks)] for masks in (one, two, three))
    open_labels = union(vote(*of_dialogue)) & ~union(vote(one, two, three))
    return [
        open_labels | (ALL_MASK & ~(a & b & c) if len({a, b, c}) == 3 else 0)
        for a, b, c in zip(one, two, three, strict=True)
    ]


def decide(one: Masks, two: Masks, three: Masks, senior: Masks) -> list[int]:
    """Decides every turn: the majority of three, and the senior's labels where it is open."""
    votes, left = vote(one, two, three), left_open(one, two, three)
    return [
        v & ~undecided | s & undecided for v, s, undecided in zip(votes, senior, left, strict=True)
    ]


def outcome_of(one: Masks, two: Masks, three: Masks) -> Outcome:
    """Names the category of a dialogue, from the votes of two annotators and the adjudicator.

    Final mismatches are distinguished by the label sets that the three gave to the whole dialogue:
    all equal, two equal, or all different.
    """
    if list(one) == list(two):
        return Outcome.EXACT
    if not any(left_open(one, two, three)):
        return Outcome.RESOLVED
    different = len({union(one), union(two), union(three)})
    return (Outcome.SAME_LABELS_3, Outcome.SAME_LABELS_2, Outcome.CONFLICT)[different - 1]
