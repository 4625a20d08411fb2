"""Plans of annotation studies: assignments, and next assignments."""

from __future__ import annotations

import pytest

from cradle_extras.label_studio.study import next_assignments, plan_study
from cradle_lib.annotation.agreement import agreement_frame
from cradle_lib.annotation.table import Annotation, Annotations
from cradle_lib.errors import CorpusError

from ...annotation.hand_study import corpus_of

A = 1


def test_a_study_is_balanced_and_adjudicated_by_the_other_team() -> None:
    corpus = corpus_of(3, count=21)
    teams = {"1": ("A", "B"), "2": ("C", "D")}
    study = plan_study(corpus, teams, rounds=2, senior="S", seed=3)
    sizes = [
        sum(a.team == team and a.round == number and a.annotator in "AC" for a in study.assignments)
        for team in teams
        for number in (1, 2)
    ]
    assert sorted(sizes) == [5, 5, 5, 6]
    assert {(a.dialogue, a.annotator) for a in study.assignments if a.team == "1"} == {
        (a.dialogue, name) for a in study.assignments if a.team == "1" for name in "AB"
    }
    entries = [
        Annotation(
            a.dialogue, a.annotator, a.team, a.round, a.role, (A * (a.annotator in "AC"), 0, 0)
        )
        for a in study.assignments
    ]
    more = next_assignments(study, Annotations.of(corpus, entries))
    assert len(more) == 21
    for item in more:
        assert item.role == "adjudicator"
        assert item.turns == (0,)
        assert item.annotator in teams[{"1": "2", "2": "1"}[item.team]]
    given_ = [item.annotator for item in more]
    assert max(given_.count(n) for n in "CD") - min(given_.count(n) for n in "CD") <= 1
    # With odd counts, choosing again could select the other adjudicator; planned ones must stay.
    assert given_.count("C") != given_.count("D") or given_.count("A") != given_.count("B")
    assert next_assignments(study.with_assignments(more), Annotations.of(corpus, entries)) == more
    assert study.with_assignments(more).with_assignments(more) == study.with_assignments(more)
    with pytest.raises(CorpusError, match=r"team \d is not in the plan, whose teams are x, y"):
        next_assignments(
            plan_study(corpus, {"x": ("A", "B"), "y": ("C", "D")}), Annotations.of(corpus, entries)
        )


def test_one_team_measures_agreement_and_cannot_adjudicate() -> None:
    corpus = corpus_of(3, count=2)
    study = plan_study(corpus, {"1": ("A", "B")}, rounds=1, senior="S")
    assert [item.annotator for item in study.assignments] == ["A", "B", "A", "B"]

    def entries(differ: int) -> Annotations:
        masks = {"A": (A, 0, 0), "B": (A * (1 - differ), 0, 0)}
        return Annotations.of(
            corpus,
            [
                Annotation(a.dialogue, a.annotator, a.team, a.round, a.role, masks[a.annotator])
                for a in study.assignments
            ],
        )

    assert set(agreement_frame(entries(1), draws=10)["team"]) == {"1"}
    assert next_assignments(study, entries(0)) == ()
    with pytest.raises(CorpusError, match="the study has one team"):
        next_assignments(study, entries(1))


@pytest.mark.parametrize(
    ("teams", "message"),
    [
        ({}, "one or more teams of two people"),
        ({"1": ("A", "B", "C")}, "one or more teams of two people"),
        ({"1": ("A", "B"), "2": ("B", "C")}, "B, B: teams and senior must be different"),
        ({"1": ("A", ""), "2": ("C", "D")}, "names are not empty"),
        # Names that give the same file name, on some systems regardless of case.
        ({"1": ("A.x", "B"), "2": ("C", "A x")}, "A.x, A x: teams"),
    ],
)
def test_invalid_studies_are_refused(teams: dict[str, tuple[str, ...]], message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        plan_study(corpus_of(1), teams, rounds=1, senior="S")
