"""What stored probabilities are worth, against scikit-learn."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
)

from cradle_lib.corpus import Corpus, Dialogue, Turn, load_corpus
from cradle_lib.detection import Predictions, load_predictions
from cradle_lib.errors import ScoringError
from cradle_lib.labels import ALERT_MASK, BITS, parse
from cradle_lib.paths import SHIPPED_RUNS
from cradle_lib.record import Record
from cradle_lib.scoring.label_probabilities import (
    probability,
    slot_probabilities,
)
from cradle_lib.scoring.occurrences import SCOPES, STAGES
from cradle_lib.scoring.thresholds import (
    bias_effects,
    chosen_thresholds,
    reliability,
    threshold_scores,
    thresholds,
)

Stored = tuple[list[dict[str, float]], str]
GOLD = [0, BITS["alert_ongoing"], BITS["confirm_SH_past"], 3]


def made(rows: list[list[tuple[int, Stored | None]]], name: str = "tiny") -> Predictions:
    """A run over dialogues of (gold mask, forks and answer) turns."""
    corpus = Corpus(
        name,
        tuple(
            Dialogue(i, tuple(Turn(j, j, "User", "hm", gold) for j, (gold, _) in enumerate(turns)))
            for i, turns in enumerate(rows)
        ),
    )
    stored = [answer for turns in rows for _, answer in turns]
    answers = tuple("none" if each is None else each[1] for each in stored)
    record = Record.create(
        model="m", name="M", group="embedded", engine="wave", prompt="turn",
        prompt_hash="0" * 16, decoding={"mode": "constrained"}, corpus=name,
        corpus_fingerprint=corpus.fingerprint,
    )  # fmt: skip
    size = len(stored)
    masks = np.array([parse(answer) for answer in answers], np.uint16)
    return Predictions(
        record, corpus, masks, np.zeros(size, np.uint8), answers, size,
        tuple(None if each is None else each[0] for each in stored),
    )  # fmt: skip


def silent(none: float, alert: float, confirm: float) -> Stored:
    """An answer ``none``, with the shares of the three branches."""
    shares = {"none": none, "alert": alert, "confirm": confirm}
    return [{branch: math.log(share) for branch, share in shares.items()}], "none"


def alert(none: float, ongoing: float, end: float) -> Stored:
    """An answer ``alert_ongoing``."""
    forks = [
        {"none": none, "alert": 0.8 * (1 - none), "confirm": 0.2 * (1 - none)},
        {"ongo": ongoing, "past": 1 - ongoing},
        {"<end>": end, ";": 1 - end},
    ]
    return [{b: math.log(p) for b, p in f.items()} for f in forks], "alert_ongoing"


shares = st.floats(0.01, 1.0)
answers = st.one_of(
    st.none(),
    st.builds(silent, shares, shares, shares),
    st.builds(alert, *[st.floats(0.05, 0.95)] * 3),
)
dialogues = st.lists(
    st.lists(st.tuples(st.sampled_from(GOLD), answers), min_size=1, max_size=6),
    min_size=1,
    max_size=5,
)
Rows = list[list[tuple[int, Stored | None]]]


def arrays(rows: Rows, wanted: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether each turn with forks is positive, is tagged, and its chance."""
    mask = SCOPES[wanted]
    kept = [(gold, each) for row in rows for gold, each in row if each is not None]
    read = [slot_probabilities(*each) for _, each in kept]
    chances = [probability(place, mask) for place in read if place is not None]
    assert len(chances) == len(kept)
    positive = [bool(gold & mask) for gold, _ in kept]
    tagged = [bool(parse(each[1]) & mask) for _, each in kept]
    return np.array(positive), np.array(tagged), np.array(chances)


@settings(deadline=None, max_examples=30)
@given(dialogues)
def test_every_point_of_a_curve_is_scikit_learns(rows: Rows) -> None:
    frame = thresholds([made(rows)], draws=2)
    for wanted in STAGES:
        positive, tagged, chances = arrays(rows, wanted)
        part = frame[frame["wanted"] == wanted]
        if not len(positive):
            assert part.empty
            continue
        points = part.pivot_table(
            index=part["threshold"].fillna(np.inf), columns="measure", values="value", dropna=False
        )
        assert points.index[-1] == np.inf
        for threshold, found in points.iterrows():
            # The last point is no threshold, but what the model itself tagged.
            flagged = tagged if threshold == np.inf else chances >= threshold
            for name, oracle in (
                ("recall", recall_score), ("precision", precision_score), ("f1", f1_score)
            ):  # fmt: skip
                expected = oracle(positive, flagged, zero_division=np.nan)
                assert found.get(name, np.nan) == pytest.approx(expected, nan_ok=True)
            rest = flagged[~positive]
            expected = rest.mean() if len(rest) else np.nan
            assert found.get("flagged", np.nan) == pytest.approx(expected, nan_ok=True)
        # With the lowest threshold everything is flagged.
        lowest = points.iloc[0]
        assert lowest.get("flagged", np.nan) == pytest.approx(1, nan_ok=True) or positive.all()


@settings(deadline=None, max_examples=30)
@given(dialogues, st.sampled_from([*STAGES, "alert_ongoing", "confirm_SH_past"]))
def test_areas_and_brier_scores_are_scikit_learns(rows: Rows, wanted: str) -> None:
    # A label that occurs has at least 20 positive turns.
    rows = rows * 20
    positive, _, chances = arrays(rows, wanted)
    frame = threshold_scores([made(rows)], draws=2)
    if wanted not in STAGES and not positive.any():
        assert wanted not in set(frame["wanted"])
        return
    if not len(positive):
        assert frame.empty
        return
    found = frame[frame["wanted"] == wanted].set_index("measure")["value"]
    both = 0 < positive.sum() < len(positive)
    expected = {
        "roc_area": roc_auc_score(positive, chances) if both else np.nan,
        "pr_area": average_precision_score(positive, chances) if positive.any() else np.nan,
        "brier": brier_score_loss(positive, np.clip(chances, 0, 1)),
        "brier_of_prevalence": brier_score_loss(positive, np.full(len(positive), positive.mean())),
    }
    if not both:
        expected["pr_area"] = np.nan
    assert found[[*expected]].to_dict() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(("times", "shown"), [(19, False), (20, True)])
def test_a_label_needs_20_positive_turns_for_scores(times: int, shown: bool) -> None:
    rows = [[(BITS["alert_past"], silent(0.5, 0.3, 0.2)), (0, silent(0.9, 0.05, 0.05))]] * times
    found = set(threshold_scores([made(rows)], draws=0)["wanted"])
    assert found == {*STAGES, *(["alert_past"] if shown else [])}


def stage_probability(choices: list[dict[str, float]], answer: str, stage: str) -> float:
    """The probability of a stage in an answer of the shipped model, whose tokens are known."""
    if stage == "any":
        odds = {branch: math.exp(p) for branch, p in choices[0].items()}
        return 1 - odds["none"] / sum(odds.values())
    labels = [] if answer == "none" else answer.split("; ")
    missed, mass, used = 1.0, 1.0, 0
    while used < len(choices):
        odds = {branch.strip(): math.exp(p) for branch, p in choices[used].items()}
        missed *= 1 - mass * odds[stage] / sum(odds.values())
        # The other choices of this label, up to the one that may end the answer.
        used += 1
        while used < len(choices) and "<end>" not in choices[used]:
            used += 1
        if used == len(choices):
            return 1 - missed
        odds = {branch: math.exp(p) for branch, p in choices[used].items()}
        mass = odds[";"] / sum(odds.values())
        used += 1
    # The answer ended: what would have followed is not stored, each label is as likely.
    left = [label for label in BITS if label not in labels]
    share = sum(label.startswith(stage) for label in left) / len(left)
    return 1 - missed * (1 - mass * share)


@pytest.mark.parametrize(
    ("model", "stages"),
    [("smollm2-135m-tuned-constrained", STAGES), ("smollm2-135m-constrained", ["any"])],
)
def test_the_highest_threshold_that_finds_enough_is_that_of_a_search_through_the_journal(
    model: str, stages: Sequence[str]
) -> None:
    corpus = load_corpus("surrogate", "test")
    path = SHIPPED_RUNS / corpus.name / f"{model}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    # A run that was resumed has a second header.
    lines = [line for line in lines if "record" not in line]
    gold = {(d.id, turn.turn_id): turn.mask for d in corpus for turn in d.user_turns}
    shares = (0.5, 0.8, 0.9, 1.0)
    found = thresholds([load_predictions(path, corpus)], recalls=shares, draws=2)
    for stage in stages:
        turns = [
            (
                stage_probability(line["choices"], line["answer"], stage),
                bool(gold[line["dialogue"], line["turn"]] & SCOPES[stage]),
            )
            for line in lines
        ]
        positives = sum(positive for _, positive in turns)
        curve = found[found["wanted"] == stage].set_index(["threshold", "measure"])
        for share in shares:
            hits = flagged = 0
            lowest = None
            for probability_, positive in sorted(turns, reverse=True):
                # Turns of equal probability are flagged together.
                if hits >= share * positives and probability_ != lowest:
                    break
                hits, flagged, lowest = hits + positive, flagged + 1, probability_
            values = curve["value"].xs("recall", level="measure")
            highest = values.index[values >= share].max()
            assert highest == pytest.approx(lowest, rel=1e-9)
            point = curve.loc[highest]
            assert point.loc["precision", "value"] == pytest.approx(hits / flagged)
            assert point.loc["recall", "value"] == pytest.approx(hits / positives)
            rest = (flagged - hits) / (len(turns) - positives)
            assert point.loc["flagged", "value"] == pytest.approx(rest)
            assert point.loc[["precision", "flagged"], "low"].notna().all()


def test_the_turns_on_which_a_bias_changed_the_answer_are_counted() -> None:
    # Without a bias a label is likelier on the first two turns.
    forks = [silent(0.4, 0.5, 0.1), silent(0.3, 0.1, 0.6), silent(0.6, 0.3, 0.1)]
    run = made([[(1, fork) for fork in forks] + [(1, None)]])
    for bias, changed in ((0.2, 0), (0.5, 1), (1.4, 2), (-1.0, 1), (-1.9, 1)):
        decoding = run.record.decoding | {"none_bias": bias}
        biased = replace(run, record=run.record.model_copy(update={"decoding": decoding}))
        frame = bias_effects([run, biased])
        assert frame.to_numpy().tolist() == [["M", bias, changed, 3]]


def sample(seed: int, size: int = 60, name: str = "tiny") -> tuple[Rows, Predictions]:
    generator = np.random.default_rng(seed)
    rows: Rows = []
    for _ in range(size):
        turns: list[tuple[int, Stored | None]] = []
        for _ in range(4):
            gold = int(generator.choice(GOLD, p=[0.6, 0.2, 0.1, 0.1]))
            odds = generator.beta(4, 3) if gold else generator.beta(2, 4)
            turns.append((gold, silent(1 - odds, odds * 0.7, odds * 0.3)))
        rows.append(turns)
    return rows, made(rows, name)


def test_a_draw_of_the_areas_is_that_of_the_dialogues_drawn() -> None:
    rows, run = sample(1)
    found = threshold_scores([run], draws=400, seed=3).set_index(["wanted", "measure"])
    picks = np.random.default_rng(8).integers(0, len(rows), size=(400, len(rows)))
    for wanted in ("any", "alert_ongoing"):
        drawn = []
        for pick in picks:
            positive, _, chances = arrays([rows[i] for i in pick], wanted)
            drawn.append(
                [roc_auc_score(positive, chances), average_precision_score(positive, chances)]
            )
        for name, ends in zip(
            ("roc_area", "pr_area"), np.quantile(drawn, [0.025, 0.975], axis=0).T, strict=True
        ):
            # Two bootstraps of 400 draws each: their ends differ by chance.
            low, high = found.loc[(wanted, name), ["low", "high"]]
            assert [low, high] == pytest.approx(ends, abs=0.04)
            assert low < found.loc[(wanted, name), "value"] < high


def test_tenths_are_those_of_scikit_learn() -> None:
    rows, run = sample(2)
    frame = reliability([run], draws=50)
    for wanted in STAGES:
        positive, _, chances = arrays(rows, wanted)
        share, mean = calibration_curve(positive, chances, n_bins=10, strategy="quantile")
        part = frame[frame["wanted"] == wanted]
        assert part["value"].tolist() == pytest.approx(share.tolist())
        assert part["chance"].tolist() == pytest.approx(mean.tolist())
        assert part["size"].sum() == len(positive)
        # A tenth without any positive turn has no interval.
        assert ((part["low"] <= part["value"]) | (part["value"] == 0)).all()


def test_equal_chances_are_one_part() -> None:
    run = made([[(1, silent(0.5, 0.3, 0.2)), (0, silent(0.5, 0.3, 0.2))]] * 3)
    part = reliability([run], draws=0).query("wanted == 'any'")
    assert part[["chance", "value", "size"]].to_numpy().tolist() == [[0.5, 0.5, 6]]


def test_a_threshold_is_chosen_on_dev_and_scored_elsewhere() -> None:
    rows, run = sample(4)
    others, dev = sample(5, name="dev")
    found = chosen_thresholds([run], [dev], draws=20)
    for wanted in STAGES:
        part = found[found["wanted"] == wanted].set_index("measure")
        [threshold] = part["threshold"].unique()
        positive, _, chances = arrays(others, wanted)
        best = max(f1_score(positive, chances >= step) for step in chances)
        assert f1_score(positive, chances >= threshold) == pytest.approx(best)
        positive, _, chances = arrays(rows, wanted)
        own = f1_score(positive, chances >= threshold)
        assert part.loc["f1", "value"] == pytest.approx(own)
    assert chosen_thresholds([run], [], draws=0).empty
    with pytest.raises(ScoringError, match="Choose a threshold on other dialogues"):
        chosen_thresholds([run], [run], draws=0)


def test_a_frame_counts_the_turns_whose_forks_can_be_read() -> None:
    wrong = ([{"none": -1.0, "alert": -2.0}], "alert_past")
    run = made(
        [[(1, silent(0.5, 0.3, 0.2)), (2, None), (2, wrong)], [(0, silent(0.9, 0.05, 0.05))]]
    )
    bare = replace(run, choices=())
    frame = thresholds([bare, run], draws=0)
    assert set(frame["system"]) == {"M"}
    counts = frame[["wanted", "positives", "turns", "of_turns"]].drop_duplicates()
    assert counts.to_numpy().tolist() == [
        ["any", 1, 2, 4], ["alert", 1, 2, 4], ["confirm", 0, 2, 4]
    ]  # fmt: skip
    assert frame[["low", "high"]].isna().all(axis=None)


def test_the_share_that_the_branches_hold_is_a_median() -> None:
    forks = [silent(0.001, 0.001, 0.002), silent(0.1, 0.1, 0.1), silent(0.3, 0.3, 0.3)]
    run = made([[(ALERT_MASK, fork) for fork in forks]])
    frame = threshold_scores([run], draws=0)
    held = frame[frame["measure"] == "on_branches"]
    assert held["value"].tolist() == pytest.approx([0.3])


@pytest.mark.parametrize("verb", [thresholds, threshold_scores, reliability])
def test_runs_without_stored_choices_give_a_frame_without_rows(verb: object) -> None:
    empty = verb([made([[(1, None)]])], draws=0)  # type: ignore[operator]
    full = verb([made([[(1, silent(0.5, 0.3, 0.2))]])], draws=0)  # type: ignore[operator]
    assert isinstance(empty, pd.DataFrame)
    assert empty.empty
    assert empty.columns.tolist() == full.columns.tolist()
    assert empty["system"].str.len().empty
