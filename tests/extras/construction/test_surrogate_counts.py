"""The test split recounted from its file against the numbers that the paper publishes."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

Talks = Callable[[str], tuple[Any, ...]]

ACUTE = ("S4", "S5")

# Counted on the real release, rows that start with "User:".
USER_ROW_LABELS = {
    "alert_ongoing": 172,
    "alert_past": 64,
    "confirm_CA_ongoing": 8,
    "confirm_CA_past": 27,
    "confirm_DV_ongoing": 25,
    "confirm_DV_past": 31,
    "confirm_RA_ongoing": 7,
    "confirm_RA_past": 59,
    "confirm_SH_ongoing": 77,
    "confirm_SH_past": 27,
    "confirm_SHA_ongoing": 23,
    "confirm_SHA_past": 40,
    "confirm_SI_active_ongoing": 58,
    "confirm_SI_active_past": 11,
    "confirm_SI_passive_ongoing": 78,
    "confirm_SI_passive_past": 4,
}


def test_dialogues_rows_and_user_rows_are_as_published(talks: Talks) -> None:
    rows = [row for talk in talks("test") for row in talk.rows]
    assert (len(talks("test")), len(rows)) == (600, 8975)
    assert sum(row.speaker == "User" for row in rows) == 4527
    assert f"{len(rows) / len(talks('test')):.2f}" == "14.96"


def test_labels_on_user_rows_have_exactly_the_published_counts(talks: Talks) -> None:
    rows = [row for talk in talks("test") for row in talk.rows if row.speaker == "User"]
    assert Counter(name for row in rows for name in row.labels) == USER_ROW_LABELS
    assert sum(bool(row.labels) for row in rows) == 703
    # 703 rows, 711 labels: eight rows with two.
    assert Counter(len(row.labels) for row in rows) == {0: 4527 - 703, 1: 695, 2: 8}
    # A model that never tags is right on all other user rows: 3824 / 4527.
    assert f"{100 * sum(not row.labels for row in rows) / len(rows):.2f}" == "84.47"


def test_two_more_labels_stand_on_a_listener_row_and_a_continuation_row(talks: Talks) -> None:
    orphans = [
        (row.speaker, row.labels)
        for talk in talks("test")
        for row in talk.rows
        if row.labels and row.speaker != "User"
    ]
    assert sorted(orphans) == [("", ("confirm_SH_ongoing",)), ("Listener", ("alert_ongoing",))]
    assert sum(len(talk.labels()) for talk in talks("test")) == 713


def test_dialogues_by_stage_are_as_published(talks: Talks) -> None:
    kinds = Counter((bool(t.labels("alert")), bool(t.labels("confirm"))) for t in talks("test"))
    assert kinds[True, True] + kinds[True, False] == 226
    assert kinds[True, True] + kinds[False, True] == 417
    assert kinds[True, True] == 203
    assert kinds[False, False] == 160


@pytest.mark.parametrize(
    ("stage", "mean", "deviation"),
    [("", "1.18", "0.89"), ("alert", "0.38", "0.50"), ("confirm", "0.79", "0.61")],
)
def test_unique_labels_per_dialogue_round_to_the_published_density(
    talks: Talks, stage: str, mean: str, deviation: str
) -> None:
    unique = [len(set(talk.labels(stage))) for talk in talks("test")]
    assert f"{statistics.fmean(unique):.2f}" == mean
    assert f"{statistics.pstdev(unique):.2f}" == deviation
    assert f"{statistics.stdev(unique):.2f}" == deviation


def test_several_labels_in_a_dialogue_are_as_rare_as_the_arithmetic_demands(talks: Talks) -> None:
    confirms = Counter(len(set(talk.labels("confirm"))) for talk in talks("test"))
    # 362 + 2 * 51 + 3 * 4 = 476 = 475 on user rows + 1
    assert confirms == {0: 183, 1: 362, 2: 51, 3: 4}
    assert sum(len(set(talk.labels("alert"))) == 2 for talk in talks("test")) == 4


def test_the_ongoing_share_is_about_63_percent(talks: Talks) -> None:
    names = [name for talk in talks("test") for name in talk.labels()]
    # (172 + 276 + 2) / 713 = 450 / 713
    assert sum(name.endswith("_ongoing") for name in names) == 450
    assert round(100 * 450 / 713) == 63


def test_scenarios_are_exactly_as_published(talks: Talks) -> None:
    found = Counter(talk.scenario for talk in talks("test"))
    assert found == {"S1": 96, "S2": 97, "S3": 91, "S4": 67, "S5": 56, "S6": 97, "S7": 96}


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_acute_scenarios_never_hold_a_past_label(talks: Talks, split: str) -> None:
    acute = [talk for talk in talks(split) if talk.scenario in ACUTE]
    assert sum(bool(talk.labels()) for talk in acute) > len(acute) / 3
    assert not [n for talk in acute for n in talk.labels() if n.endswith("_past")]


def test_reveal_timing_comes_in_thirds_and_holds_for_the_first_disclosure(talks: Talks) -> None:
    assert Counter(talk.timing for talk in talks("test")) == {"early": 200, "mid": 200, "late": 200}
    windows = {"early": (1, 3), "mid": (4, 6), "late": (7, 99)}
    for talk in talks("test"):
        stage = "confirm" if talk.labels("confirm") else "alert"
        turns = [
            number
            for number, row in enumerate(talk.rows, start=1)
            if any(name.startswith(stage) for name in row.labels)
        ]
        if turns:
            low, high = windows[talk.timing]
            assert low <= turns[0] <= high


def test_lengths_spread_around_fifteen_turns(talks: Talks) -> None:
    lengths = Counter(len(talk.rows) for talk in talks("test"))
    assert min(lengths) >= 11
    assert max(lengths) <= 20
    assert lengths.most_common(1)[0][0] in range(13, 18)
    assert len(lengths) >= 9


def test_listener_first_dialogues_and_continuation_rows_are_present(talks: Talks) -> None:
    assert sum(talk.rows[0].speaker == "Listener" for talk in talks("test")) == 90
    rows = [row for talk in talks("test") for row in talk.rows]
    continued = [row for row in rows if not row.speaker]
    # 20 lists each of 2, 3 and 4 items
    assert len(continued) == 20 * (2 + 3 + 4)
    assert all(row.text.startswith("- ") for row in continued)


def test_files_say_what_they_are(surrogate_folder: Path) -> None:
    for name in ("train", "dev", "test", "meta"):
        schema = pq.read_schema(surrogate_folder / f"{name}.parquet")
        assert schema.metadata[b"notice"] == b"surrogate, written by this project, CC BY 4.0"
        if name != "meta":
            columns = [(field.name, str(field.type)) for field in schema]
            assert columns == [("turn_id", "int64"), ("text", "string"), ("labels", "string")]
    readme = (surrogate_folder / "README.md").read_text(encoding="utf-8")
    assert "Surrogate, written by this project. Licence: CC BY 4.0." in readme
