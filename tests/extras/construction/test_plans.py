"""Plans: drawing, scenarios that fit the labels, and the editable file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_extras.construction.plan import KINDS, TIMINGS, TURNS, WINDOWS, Kind, plan_dialogues
from cradle_extras.construction.plan_files import plan_text, read_plans
from cradle_extras.construction.posts import Post, load_posts
from cradle_extras.construction.scenarios import ACUTE, SCENARIOS, fitting_scenarios
from cradle_lib import labels
from cradle_lib.errors import CorpusError

CONFIRMS = [label for label in labels.LABELS if labels.stage(label) == "confirm"]
MASKS = st.sets(st.sampled_from(CONFIRMS), max_size=2).map(labels.mask_of)


def posts_of(masks: list[int]) -> list[Post]:
    return [Post(f"p{i}", "", "text", mask) for i, mask in enumerate(masks)]


@settings(max_examples=30)
@given(st.lists(MASKS, min_size=1, max_size=40), st.sampled_from(KINDS), st.integers(0, 9))
def test_a_plan_has_the_labels_of_its_post_in_its_window(
    masks: list[int], kind: Kind, seed: int
) -> None:
    plans = plan_dialogues(posts_of(masks), kind, seed=seed)
    assert [plan.mask for plan in plans] == masks
    for plan in plans:
        low, high = TURNS[kind]
        assert low <= len(plan.rows) <= high
        assert plan.rows == ("UL" * 8)[: len(plan.rows)]
        for place, step in zip(plan.places, plan.steps, strict=True):
            if step.stage == "confirm":
                assert place + 1 in WINDOWS[kind][plan.timing]
            assert plan.rows[place] == "U"
        if any(event.state == "past" for event in plan.events):
            assert plan.scenario not in ACUTE
        assert not {event.type for event in plan.events} & {*SCENARIOS[plan.scenario].without}
    counts = Counter(plan.timing for plan in plans)
    assert max(counts.values()) - min(counts[timing] for timing in TIMINGS) <= 1
    assert plans == plan_dialogues(posts_of(masks), kind, seed=seed)


def test_scenarios_and_timings_are_uniform_where_everything_fits() -> None:
    plans = plan_dialogues(posts_of([0] * 2100), "training")
    assert set(Counter(plan.scenario for plan in plans).values()) == {300}
    pairs = Counter((plan.scenario, plan.timing) for plan in plans)
    assert len(pairs) == 21


def test_a_scenario_fits_all_labels() -> None:
    # S3 has no domestic violence, S5 no self-harm; S4 and S5 have nothing past.
    assert fitting_scenarios(["confirm_DV_ongoing"]) == SCENARIOS.keys() - {"S3"}
    assert fitting_scenarios(["confirm_DV_past", "confirm_SH_ongoing"]) == {"S1", "S2", "S6", "S7"}
    assert fitting_scenarios([]) == SCENARIOS.keys()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("confirm SI_passive.ongoing", "confirm SH.ongoing"),
        ("confirm SI_passive.ongoing", "confirm SI_passive.soon"),
        (" confirm SI_passive.ongoing", ""),
    ],
)
def test_plans_survive_a_round_trip_unless_damaged(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "plans.csv"
    plans = plan_dialogues(load_posts())
    path.write_text(plan_text(plans))
    assert read_plans(path) == plans
    assert old in plan_text(plans)
    path.write_text(plan_text(plans).replace(old, new, 1))
    with pytest.raises(CorpusError, match="row 0: the row is not a valid plan"):
        read_plans(path)
