"""Plans: what is drawn, what the mapping allows, and the file that people change."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_extras.construction.plan import KINDS, TURNS, WINDOWS, Kind, plan_dialogues
from cradle_extras.construction.plan_files import plan_text, read_plans, write_plans
from cradle_extras.construction.posts import Post, load_posts
from cradle_extras.construction.scenarios import ACUTE, SCENARIOS, Scenario, fitting_scenarios
from cradle_lib import labels
from cradle_lib.errors import CorpusError

CONFIRMS = [label for label in labels.LABELS if labels.stage(label) == "confirm"]
MASKS = st.sets(st.sampled_from(CONFIRMS), max_size=3).map(labels.mask_of)


def posts_of(masks: list[int]) -> list[Post]:
    return [Post(f"p{i}", "", "text", mask) for i, mask in enumerate(masks)]


@settings(max_examples=30)
@given(st.lists(MASKS, min_size=1, max_size=40), st.sampled_from(KINDS), st.integers(0, 9))
def test_a_plan_has_the_post_s_labels_in_the_window_of_its_phase(
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
        for event in plan.events:
            assert event.type in SCENARIOS[plan.scenario].types
    counts = Counter(plan.timing for plan in plans)
    assert max(counts.values()) - min(counts[t] for t in ("early", "mid", "late")) <= 1
    assert plans == plan_dialogues(posts_of(masks), kind, seed=seed)


@pytest.mark.parametrize("kind", KINDS)
def test_plans_come_back_from_their_file(kind: Kind, tmp_path: Path) -> None:
    masks = [labels.mask_of(CONFIRMS[n : n + n % 4]) for n in range(12)]
    plans = plan_dialogues(posts_of(masks), kind)
    write_plans(plans, tmp_path / "plans.csv")
    assert read_plans(tmp_path / "plans.csv") == plans


def test_scenarios_and_timings_are_uniform_where_everything_fits() -> None:
    plans = plan_dialogues(posts_of([0] * 2100), "training")
    assert set(Counter(plan.scenario for plan in plans).values()) == {300}
    pairs = Counter((plan.scenario, plan.timing) for plan in plans)
    assert len(pairs) == 21


def test_labels_without_a_common_scenario_take_the_least_frequent_of_all() -> None:
    two = {
        "A": Scenario("a", "a", frozenset({"SH"})),
        "B": Scenario("b", "b", frozenset({"DV"})),
        "C": Scenario("c", "c", frozenset({"DV"})),
    }
    both = labels.mask_of(["confirm_SH_past", "confirm_DV_past"])
    only_dv = labels.mask_of(["confirm_DV_past"])
    assert fitting_scenarios(labels.labels_of(both), two) == {"A", "B", "C"}
    plans = plan_dialogues(posts_of([only_dv, only_dv, both]), scenarios=two)
    assert sorted(plan.scenario for plan in plans[:2]) == ["B", "C"]
    assert plans[2].scenario == "A"


def test_labels_that_no_scenario_fits_are_one_clear_error() -> None:
    acute = {"S4": Scenario("x", "x", frozenset({"SH"}))}
    past = labels.mask_of(["confirm_SH_past"])
    with pytest.raises(CorpusError, match="post p0: no scenario fits confirm_SH_past"):
        plan_dialogues(posts_of([past]), scenarios=acute)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("confirm SI_passive.ongoing", "confirm SH.ongoing"),
        ("confirm SI_passive.ongoing", "confirm SI_passive.soon"),
        (" confirm SI_passive.ongoing", ""),
    ],
)
def test_a_damaged_plan_is_refused_with_its_row(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "plans.csv"
    text = plan_text(plan_dialogues(load_posts()))
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(CorpusError, match="row 0: the row is no plan"):
        read_plans(path)
