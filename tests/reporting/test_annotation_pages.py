"""Tables and figures of the annotation pages: counts by hand, and published values beside ours."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import pytest

from cradle_lib.annotation import Annotation, Annotations, adjudicate
from cradle_lib.annotation.interface import HOTKEYS
from cradle_lib.annotation.pairs import pairs
from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.labels import BITS, LABELS
from cradle_lib.reporting.adjudication_tables import (
    decision_table,
    outcome_counts_table,
    trail_table,
)
from cradle_lib.reporting.annotation_figures import (
    adjudication_figure,
    agreement_figure,
    annotator_confusion_figures,
)
from cradle_lib.reporting.annotation_tables import (
    agreement_by_group,
    agreement_table,
    interface_table,
    units_table,
)
from cradle_lib.reporting.range_tables import ranges_table
from cradle_lib.reporting.tables import DASH, Table

ALERT, SH = BITS["alert_ongoing"], BITS["confirm_SH_ongoing"]


@pytest.fixture(scope="module")
def study() -> Annotations:
    """Each team has two dialogues of three user turns and a Listener turn, in one round."""
    dialogues = tuple(
        Dialogue(
            i,
            tuple(Turn(4 * i + t, t, "Listener" if t == 1 else "User", "Hm.", 0) for t in range(4)),
        )
        for i in range(4)
    )
    votes = {
        # Team 1: exact; then an alert that only A gives, and C with A.
        "d0000": {"A": (ALERT, 0, SH, 0), "B": (ALERT, 0, SH, 0)},
        "d0001": {"A": (ALERT, 0, 0, 0), "B": (0, 0, 0, 0), "C": (ALERT, 0, 0, 0)},
        # Team 2: three positions for one alert; then three different sets.
        "d0002": {
            "C": (ALERT, 0, 0, 0),
            "D": (0, 0, ALERT, 0),
            "A": (0, 0, 0, ALERT),
            "S": (ALERT, 0, 0, 0),
        },
        "d0003": {"C": (ALERT, 0, 0, 0), "D": (SH, 0, 0, 0), "B": (0, 0, 0, 0), "S": (SH, 0, 0, 0)},
    }  # fmt: skip
    entries = []
    for dialogue, given in votes.items():
        team = "1" if dialogue < "d0002" else "2"
        own = "AB" if team == "1" else "CD"
        for name, masks in given.items():
            role = "senior" if name == "S" else "annotator" if name in own else "adjudicator"
            entries.append(Annotation(dialogue, name, team, 1, role, masks))  # type: ignore[arg-type]
    return Annotations.of(Corpus("hand", dialogues), entries)


def rows(table: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.to_csv())))


def test_agreement_has_published_ranges_beside_it_and_no_number_for_an_absent_label(
    study: Annotations,
) -> None:
    table = agreement_table(agreement_by_group(study, draws=50))
    by_label = {(row["group"], row["Label"]): row for row in rows(table)}
    alert = by_label["Team 1, round 1", "alert_ongoing"]
    assert (alert["Both"], alert["Only one / other"]) == ("1", "1 / 0")
    assert float(alert["Jaccard"]) == 0.5
    assert float(alert["F1"]) == pytest.approx(2 / 3)
    assert alert["Published"] == f"0.42{DASH}0.69"
    assert by_label["Team 2, round 1", "DV_past"]["Published"] == f"0.50{DASH}1.00"
    assert (
        by_label["Team 2, round 1", "all labels"]["Published"]
        == f"\N{GREEK SMALL LETTER KAPPA} 0.51{DASH}0.75"
    )
    passive = by_label["Team 2, round 1", "SI_passive_past"]
    assert passive["Published"] == "0.30"
    assert passive["Jaccard"] == "nan"
    assert "nan" not in table._repr_html_()
    assert len(by_label) == 2 * (len(LABELS) + 1)


def test_every_stated_range_stands_beside_what_is_found(study: Annotations) -> None:
    found = {(row["group"], row["Stated"]): row for row in rows(ranges_table(study, draws=0))}
    here, otherwise = "As the ranges are read here", "Read otherwise"
    assert [group for group, _ in found] == [here] * 5 + [otherwise] * 3
    exact = found[here, "Exact match, all turns (%)"]
    assert float(exact["Team 1, round 1"]) == pytest.approx(100 * 7 / 8)
    assert (exact["Published, team 1"], exact["Published, team 2"]) == ("96.78", "91.69")
    alone = found[otherwise, "Exact match, user turns (%)"]
    assert float(alone["Team 1, round 1"]) == pytest.approx(100 * 5 / 6)
    # Team 1 on its three labelled turns: alerts 1 of 2, self-harm 1 of 1.
    assert found[here, "Jaccard of alerts"]["Team 1, round 1"] == f"0.50{DASH}0.50"
    confirms = found[here, "Jaccard of confirms but passive"]
    assert confirms["Team 1, round 1"] == f"1.00{DASH}1.00"
    assert confirms["Team 2, round 1"] == f"0.00{DASH}0.00"
    assert confirms["Published, team 1"] == f"0.67{DASH}1.00"
    assert found[here, "Jaccard of passive, ongoing"]["Team 1, round 1"] == "nan"
    # Alert: 2 of 3 the same, chance (2 x 1 + 1 x 2) / 9 = 4/9: 0.4. Self-harm: all the same.
    assert found[otherwise, "Kappa of each label"]["Team 1, round 1"] == f"0.40{DASH}1.00"
    # Pooled over 3 x 16 decisions: 46 or 47 of 48 the same; 2 both, 1 only A.
    one, other = 3 / 48, 2 / 48
    chance = one * other + (1 - one) * (1 - other)
    assert float(found[here, "Kappa, labels pooled"]["Team 1, round 1"]) == pytest.approx(
        (47 / 48 - chance) / (1 - chance)
    )


def test_a_team_without_a_dialogue_in_a_round_has_no_block_there(study: Annotations) -> None:
    later = Annotations.of(
        study.corpus, (replace(e, round=2) if e.dialogue == "d0001" else e for e in study.entries)
    )
    assert list(agreement_by_group(later, draws=0)) == [
        "Team 1, round 1", "Team 1, round 2", "Team 2, round 1",
    ]  # fmt: skip


def test_a_window_and_a_unit_set_change_what_they_should(study: Annotations) -> None:
    found = {(r["group"].split(":")[0], r["Measure"]): r for r in rows(units_table(study, draws=0))}
    columns = (
        "Turns that either annotator labelled",
        "All user turns",
        "All turns",
    )
    # Team 2 on d0002: one user turn lies between 0 and 2 (the Listener's does not count).
    assert [float(found["Team 2", "F1 within one user turn"][c]) for c in columns] == [0.5] * 3
    assert [float(found["Team 1", "Exact match"][c]) for c in columns] == pytest.approx(
        [2 / 3, 5 / 6, 7 / 8]
    )


def test_outcomes_and_deciders_are_counted(study: Annotations) -> None:
    result = adjudicate(study)
    counted = {row["Outcome"]: row for row in rows(outcome_counts_table(result))}
    assert [counted[name]["All"] for name in counted] == ["1", "1", "1", "0", "1"]
    assert [counted[name]["Published"] for name in counted] == [
        "323.0", "132.0", "11.0", "48.0", "86.0",
    ]  # fmt: skip
    decided = {row["Label"]: row for row in rows(decision_table(result))}
    # d0000: both; d0001: the majority; d0002: the senior, not the other two; d0003: rejected.
    assert list(decided["alert_ongoing"].values())[1:] == ["1", "1", "1", "3"]
    assert list(decided["SH_ongoing"].values())[1:] == ["1", "0", "1", "0"]


def test_the_trail_of_a_conflict_names_everybody(study: Annotations) -> None:
    table = trail_table(adjudicate(study))
    assert "d0003" in table.caption
    assert [tuple(row.values()) for row in rows(table)] == [
        ("Turn 0", "alert_ongoing", "C", "Senior", "Rejected"),
        ("Turn 0", "SH_ongoing", "D, S", "Senior", "Gold"),
    ]
    assert table.notes[0] == (
        "Who voted: C (annotator), D (annotator), B (adjudicator), S (senior)."
    )
    calm = Annotations.of(study.corpus, (e for e in study.entries if e.dialogue == "d0000"))
    assert rows(trail_table(adjudicate(calm))) == []


def test_the_interface_is_listed_with_its_keys() -> None:
    found = rows(interface_table())
    assert len(found) == len(LABELS) / 2
    keys = [row[state] for row in found for state in ("Ongoing", "Past")]
    assert keys == [HOTKEYS[label] for label in LABELS]
    assert (found[0]["Button"], found[1]["Button"]) == ("Alert", "Confirm SI passive")


def test_the_flow_says_in_words_what_it_draws(study: Annotations) -> None:
    figure = adjudication_figure(adjudicate(study))
    assert "Alluvial drawing of 4 dialogues" in figure.alt
    assert "1 agree exactly; the vote resolves 1 of the rest; the senior decides 2" in figure.alt
    text = figure.light.decode()
    for step in ("team 1", "exact agreement", "resolved 2:1", "labels agree 3:0", "turn conflict"):
        assert f">{step}<" in text
    assert "labels agree 2:1" not in text
    # One ribbon between neighbouring columns on each dialogue's way: 1 + 2 + 3 + 3.
    assert len(re.findall(r'<path d="M[^"]*C[^"]*C[^"]*z', text)) == 9
    assert figure.dark != figure.light


def test_agreement_and_confusion_say_in_words_what_they_draw(study: Annotations) -> None:
    figure = agreement_figure(agreement_by_group(study, by_round=False, draws=20))
    assert "Team 1: least on alert_ongoing (0.50)" in figure.alt
    assert "95 % intervals" in figure.caption
    one, two = annotator_confusion_figures(study)
    # A gave 3 labels: B gave 2 of them too, and nothing for one. C and D: SH for an alert.
    assert "Of 3 labels of A, B gave 2 on the same turn, nothing for 1 and another" in one.alt
    assert "Of 2 labels of C, D gave 0 on the same turn, nothing for 1 and another label for 1" in (
        two.alt
    )
    assert len(pairs(study)) == 2
