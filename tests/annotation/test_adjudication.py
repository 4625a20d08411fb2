"""Adjudication: worked examples of every category, and properties of all votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.annotation.adjudication import adjudicate
from cradle_lib.annotation.table import Annotation, Annotations
from cradle_lib.annotation.voting import Outcome, decide, left_open, outcome_of, vote
from cradle_lib.corpus import read_release
from cradle_lib.corpus.release import write_release
from cradle_lib.errors import CorpusError
from cradle_lib.labels import BITS, labels_of

from .hand_study import corpus_of

A, B, C = 1, 2, 4

masks = st.sampled_from([0, 0, 0, A, B, A | B, A | C, C])
turns = st.integers(1, 5)
four = turns.flatmap(
    lambda n: st.tuples(*[st.lists(masks, min_size=n, max_size=n) for _ in range(4)])
)


@pytest.mark.parametrize(
    ("votes", "outcome"),
    [
        # Both agree, whatever a third would give.
        (([0, A], [0, A], [B, B]), Outcome.EXACT),
        # The third agrees with one of them on each turn.
        (([A, 0], [0, B], [A, B]), Outcome.RESOLVED),
        # All three give A, each on another turn.
        (([A, 0, 0], [0, A, 0], [0, 0, A]), Outcome.SAME_LABELS_3),
        # Two give A, on different turns; the third gives nothing.
        (([A, 0], [0, A], [0, 0]), Outcome.SAME_LABELS_2),
        # Three different sets on one turn.
        (([A | B], [B], [A]), Outcome.CONFLICT),
    ],
)
def test_a_vote_has_the_papers_category(votes: tuple[list[int], ...], outcome: Outcome) -> None:
    one, two, three = votes
    assert outcome_of(one, two, three) is outcome
    if outcome not in (Outcome.EXACT, Outcome.RESOLVED):
        senior = [A] + [0] * (len(one) - 1)
        assert decide(one, two, three, senior) == senior


def test_the_senior_decides_only_open_labels() -> None:
    # Turn 0: all differ. Turn 1: two of three give B, although the senior gives nothing.
    assert decide([A, B], [C, B], [0, 0], [C, 0]) == [C, B]
    # All three sets differ, but all contain A, so that A does not depend on the senior.
    assert decide([A], [A | B], [A | C], [0]) == [A]
    assert decide([A], [A | B], [A | C], [B]) == [A | B]
    # Label A is open (turns 1 and 2). C on turn 0 has a majority and does not depend on the senior.
    assert decide([C, A, 0], [C, 0, A], [0, 0, 0], [0, 0, A]) == [C, 0, A]


def majority_by_loop(one: Sequence[int], two: Sequence[int], three: Sequence[int]) -> list[int]:
    gold = []
    for given_ in zip(one, two, three, strict=True):
        mask = 0
        for bit in BITS.values():
            if sum(bool(given & bit) for given in given_) >= 2:
                mask |= bit
        gold.append(mask)
    return gold


@settings(deadline=None, max_examples=100)
@given(votes=four)
def test_votes_follow_the_majority_and_do_not_depend_on_order(votes: tuple[list[int], ...]) -> None:
    one, two, three, senior = votes
    assert vote(one, two, three) == majority_by_loop(one, two, three)
    gold = decide(one, two, three, senior)
    for turn, mask in enumerate(gold):
        given_ = [voter[turn] for voter in (one, two, three)]
        unanimous = given_[0] & given_[1] & given_[2]
        assert unanimous & ~mask == 0, "a unanimous label survives"
        assert mask & ~(given_[0] | given_[1] | given_[2] | senior[turn]) == 0, "no vote, no label"
    for order in permutations((one, two, three)):
        assert decide(*order, senior) == gold
    assert decide(gold, gold, gold, gold) == gold
    assert outcome_of(gold, gold, gold) is Outcome.EXACT
    if one == two:
        # If two agree, a third vote can't change anything.
        assert vote(one, two, three) == one
        assert not any(left_open(one, two, three))


def test_gold_keeps_the_ids_and_metadata_of_the_dialogues(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(
        "turn_id,text,labels,dialogue_id,scenario\n0,User: Hm.,none,talk-7,S3\n", encoding="utf-8"
    )
    corpus = read_release(file)
    entries = [Annotation("talk-7", name, "1", 1, "annotator", (A,)) for name in "AB"]
    gold = adjudicate(Annotations.of(corpus, entries)).corpus()
    write_release(gold, tmp_path / "gold.csv")
    again = read_release(tmp_path / "gold.csv")
    assert [(d.id, d.mask) for d in again] == [("talk-7", A)]
    assert again.meta == {"scenario": ["S3"]}


def study_of(*votes: Sequence[int]) -> Annotations:
    people = (("A", "annotator"), ("B", "annotator"), ("C", "adjudicator"), ("S", "senior"))
    entries = [
        Annotation("d0000", name, "1", 1, role, tuple(masks))  # type: ignore[arg-type]
        for (name, role), masks in zip(people, votes, strict=False)
    ]
    return Annotations.of(corpus_of(len(votes[0])), entries)


@settings(deadline=None, max_examples=30)
@given(votes=four)
def test_the_audit_names_the_voters_of_every_label(votes: tuple[list[int], ...]) -> None:
    result = adjudicate(study_of(*votes))
    gold = result.gold["d0000"]
    audit = {(row.turn_id, row.label): row for row in result.audit().itertuples()}
    assert {key for key, row in audit.items() if row.result == "gold"} == {
        (turn, label) for turn, mask in enumerate(gold) for label in labels_of(mask)
    }
    asked = dict(zip("ABCS", votes, strict=True))
    if votes[0] == votes[1]:
        asked = {"A": votes[0], "B": votes[1]}
    for (turn, label), row in audit.items():
        voters = str(row.voters).split()
        assert voters == [n for n, given_ in asked.items() if given_[turn] & BITS[label]]
        everybody = set(voters) >= set(asked) - {"S"}
        if everybody:
            assert row.by == "agreement"
        if row.by == "agreement":
            assert voters[:2] == ["A", "B"]
            assert row.result == "gold"
        if row.by == "majority":
            assert (row.result == "gold") == (len(set(voters) & set("ABC")) >= 2)
        if row.by == "senior":
            assert (row.result == "gold") == ("S" in voters)
    assert len(result.audit()) == len(audit)
    again = adjudicate(study_of(*[gold] * 4))
    assert again.gold == result.gold
    assert again.counts[Outcome.EXACT] == 1


def test_a_missing_vote_is_an_error_that_names_the_dialogue() -> None:
    with pytest.raises(CorpusError, match=r"d0000: A, B leave turns 1 open, and nobody has adj"):
        adjudicate(study_of([0, A], [0, 0]))
    with pytest.raises(CorpusError, match=r"d0000: A, B, C leave turns 0, 1 open, and no senior"):
        adjudicate(study_of([A, 0], [0, A], [0, 0]))
    alone = study_of([0, A])
    with pytest.raises(CorpusError, match=r"d0000: labelled by annotator A; expected two"):
        adjudicate(alone)
    two = corpus_of(1, count=2)
    votes = [Annotation("d0001", name, "1", 1, "annotator", (A,)) for name in "AB"]
    with pytest.raises(CorpusError, match="1 of 2 dialogues have no annotation"):
        adjudicate(Annotations.of(two, votes)).corpus()
    # The senior is not needed if no label is open.
    assert adjudicate(study_of([0, A], [0, 0], [0, A])).gold["d0000"] == (0, A)


def test_annotations_with_duplicates_unknown_dialogues_or_wrong_lengths_are_refused() -> None:
    corpus = corpus_of(2)
    entry = Annotation("d0000", "A", "1", 1, "annotator", (0, 0))
    for entries, message in (
        ([entry, entry], "annotated twice by the same person"),
        ([replace(entry, dialogue="d0009")], "no such dialogue"),
        ([replace(entry, masks=(0,))], "labels for 1 turns, the dialogue has 2"),
    ):
        with pytest.raises(CorpusError, match=message):
            Annotations.of(corpus, entries)
