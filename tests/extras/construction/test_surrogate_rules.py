"""The protocol in every dialogue, and the training prompt's tag rules in train and dev."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

Talks = Callable[[str], tuple[Any, ...]]

GENERATED = ("train", "dev")
PHASES = {"early": {3, 5, 7}, "mid": {7, 9, 11}, "late": {11, 13, 15}}


def turns_with(talk: Any, stage: str) -> list[int]:
    """Turns, counted from 1, that carry a label of the stage."""
    return [
        number
        for number, row in enumerate(talk.rows, start=1)
        if any(name.startswith(stage) for name in row.labels)
    ]


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_a_confirm_stands_once_per_label(talks: Talks, split: str) -> None:
    for talk in talks(split):
        assert set(Counter(talk.labels("confirm")).values()) <= {1}


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_every_alert_precedes_a_confirm_of_its_own_that_shares_its_state(
    talks: Talks, split: str
) -> None:
    for talk in talks(split):
        if not talk.labels("confirm"):
            continue
        # Walk backwards: an alert takes one of the confirms that are still to come.
        to_come: Counter[str] = Counter()
        for row in reversed(talk.rows):
            for name in row.labels:
                if name.startswith("alert_"):
                    state = name.removeprefix("alert_")
                    assert to_come[state] > 0
                    to_come[state] -= 1
            for name in row.labels:
                if name.startswith("confirm_"):
                    to_come[name.rsplit("_", 1)[1]] += 1


@pytest.mark.parametrize(
    ("split", "dialogues", "rows"), [("train", 3058, 48557), ("dev", 420, 6679)]
)
def test_sizes_are_exactly_as_published(
    talks: Talks, split: str, dialogues: int, rows: int
) -> None:
    assert len(talks(split)) == dialogues
    assert sum(len(talk.rows) for talk in talks(split)) == rows


@pytest.mark.parametrize("split", GENERATED)
def test_turns_alternate_and_the_user_starts(talks: Talks, split: str) -> None:
    for talk in talks(split):
        speakers = [row.speaker for row in talk.rows]
        assert len(speakers) >= 15
        assert speakers == [("User", "Listener")[i % 2] for i in range(len(speakers))]
    lengths = Counter(len(talk.rows) for talk in talks(split))
    assert lengths[15] > len(talks(split)) / 2


@pytest.mark.parametrize("split", GENERATED)
def test_labels_stand_on_user_rows_only(talks: Talks, split: str) -> None:
    assert not [r for t in talks(split) for r in t.rows if r.labels and r.speaker != "User"]


@pytest.mark.parametrize("split", GENERATED)
def test_all_confirms_stand_on_one_turn_inside_the_window_of_the_phase(
    talks: Talks, split: str
) -> None:
    for talk in talks(split):
        confirms = turns_with(talk, "confirm")
        assert len(confirms) <= 1
        if confirms:
            assert confirms[0] in PHASES[talk.timing]


@pytest.mark.parametrize("split", GENERATED)
def test_at_most_one_alert_stands_before_the_confirm_turn(talks: Talks, split: str) -> None:
    for talk in talks(split):
        alerts, confirms = turns_with(talk, "alert"), turns_with(talk, "confirm")
        assert len(talk.labels("alert")) <= 1
        if alerts and confirms:
            assert alerts[0] < confirms[0]


@pytest.mark.parametrize("split", GENERATED)
def test_label_shares_are_as_published(talks: Talks, split: str) -> None:
    found = talks(split)
    unique = sum(len(set(talk.labels())) for talk in found) / len(found)
    assert 1.28 <= unique <= 1.31
    names = Counter(name for talk in found for name in talk.labels())
    assert round(100 * names["alert_ongoing"] / names.total()) == 30
    assert names.most_common(1)[0][0] == "alert_ongoing"
    centred = sum(n for name, n in names.items() if "_SI_" in name or "_SH_" in name)
    assert centred > (names.total() - names["alert_ongoing"] - names["alert_past"]) / 2
    assert 0.26 <= sum(not talk.labels() for talk in found) / len(found) <= 0.31
    both = sum(bool(t.labels("alert")) and bool(t.labels("confirm")) for t in found)
    assert round(both / len(found), 2) == 0.5


@pytest.mark.parametrize("split", GENERATED)
def test_phases_come_in_thirds(talks: Talks, split: str) -> None:
    counts = Counter(talk.timing for talk in talks(split)).values()
    assert max(counts) - min(counts) <= 1
