from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import nct
from scipy.stats import t as student
from sklearn.metrics import f1_score
from statsmodels.stats.multitest import multipletests

from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.labels import LABELS
from cradle_lib.scoring.compare import Comparison, compare, detectable, rank_ranges
from cradle_lib.scoring.conventions import Conventions
from cradle_lib.scoring.evaluate import evaluate

from .made_runs import AO, SHO, bits, make_corpus, make_predictions

QUICK = {"permutations": 499}
N, DRAWS, SEED = 12, 200, 3


@pytest.fixture(scope="module")
def runs() -> list[Predictions]:
    """Three runs: nothing, half of the confirms, everything."""
    corpus = make_corpus([[("U", AO), ("L", 0), ("U", SHO), ("U", 0)]] * 40)
    gold = corpus.gold
    half = np.where(np.arange(len(gold)) % 2 == 0, gold & SHO, 0)
    half[1::6] = SHO
    return [make_predictions(corpus, masks) for masks in (0 * gold, half, gold)]


@pytest.fixture(scope="module")
def found(runs: list[Predictions]) -> Comparison:
    return compare(runs, names=["none", "half", "all"], **QUICK)


def test_the_declared_family_and_the_labels_are_corrected_separately(found: Comparison) -> None:
    frame = found.to_frame()
    labels = frame["label"].notna()
    for tests, method, size in ((frame[~labels], "holm", 12), (frame[labels], "fdr_bh", 3)):
        tested = tests.dropna(subset="p")
        assert len(tested) == size
        expected = multipletests(tested["p"], method=method)[1]
        assert tested["adjusted_p"].to_numpy() == pytest.approx(expected)


@pytest.mark.parametrize(("kept", "verdict"), [(9, "insufficient"), (10, "not shown")])
def test_a_label_is_tested_if_the_runs_differ_in_ten_dialogues(
    runs: list[Predictions], kept: int, verdict: str
) -> None:
    gold = runs[2].corpus.gold
    # Each run misses some alerts that the other one finds.
    first, second = gold.copy(), gold.copy()
    first[0 : 3 * kept : 6] &= ~np.uint16(AO)
    second[3 : 3 * kept : 6] &= ~np.uint16(AO)
    pair = [make_predictions(runs[0].corpus, masks) for masks in (first, second)]
    frame = compare(pair, names=[*"ab"], permutations=99).to_frame()
    row = frame[frame["label"] == "alert_ongoing"].iloc[0]
    assert (row["discordant"], row["verdict"]) == (kept, verdict)


def test_incomparable_runs_are_refused(runs: list[Predictions]) -> None:
    gold_history = replace(runs[2], record=runs[2].record.model_copy(update={"history": "gold"}))
    with pytest.raises(ScoringError, match="history is 'self' for a and 'gold' for b"):
        compare([runs[0], gold_history], names=["a", "b"], **QUICK)
    for wrong in (runs[:1], runs[:2]):
        with pytest.raises(ScoringError, match="Name two or more, each once"):
            compare(wrong)


@pytest.mark.parametrize("left_out", ["o" * 120, "u" + "o" * 119])
def test_runs_that_leave_out_different_turns_are_refused(
    runs: list[Predictions], left_out: str
) -> None:
    pair = [
        make_predictions(runs[0].corpus, runs[2].masks, outcomes, name)
        for name, outcomes in (("a", "ou" + "o" * 118), ("b", left_out))
    ]
    exclude = Conventions(unparsed="exclude")
    message = rf"leaves out different turns of each \(1 for a, {left_out.count('u')} for b\)"
    with pytest.raises(ScoringError, match=message):
        compare(pair, conventions=exclude, **QUICK)
    with pytest.raises(ScoringError, match=message):
        rank_ranges([evaluate(run, conventions=exclude, draws=0) for run in pair])
    same = compare([pair[0]] * 2, names=["a", "b"], conventions=exclude, **QUICK)
    assert same.to_frame()["value"].dropna().eq(0).all()


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("draws", {"draws": 0}),
        ("seed", {"seed": 1}),
        ("zero_division", {"conventions": Conventions(zero_division=1.0)}),
    ],
)
def test_evaluations_with_other_settings_are_not_ranked_together(
    runs: list[Predictions], part: str, other: dict[str, Any]
) -> None:
    for pair in ([{}, other], [other, {}]):
        found = [
            evaluate(run, **{"draws": 20, **options})
            for run, options in zip(runs, pair, strict=False)
        ]
        with pytest.raises(ScoringError, match=f"can't be compared: {part} is"):
            rank_ranges(found)


def test_the_power_note_follows_the_textbook_formula(runs: list[Predictions]) -> None:
    corpus = runs[0].corpus
    kept = np.random.default_rng(4).random(len(corpus.gold)) < 0.5
    some = make_predictions(corpus, np.where(kept, corpus.gold, 0))
    one = corpus.gold.copy()
    one[0] = 0
    pair = make_predictions(corpus, one & some.masks)
    found = compare([some, runs[0], pair], names=["some", "none", "one"], **QUICK)
    # z(.975) + z(.8) = 1.9600 + 0.8416.
    assert detectable(1.0, 20) == pytest.approx(2.8016, abs=1e-4)
    sizes = found.to_frame().query("level == 'turn' and score == 'micro_f1'")["detectable"]
    assert "With 40 dialogues" in found.power_note
    assert f"{100 * sizes.iloc[0]:.1f} points" in found.power_note
    assert found.power_note.endswith("It is unknown for 1 of the 2 pairs.")


@pytest.mark.parametrize(
    ("kept", "note"),
    [
        (5, "Runs differ from the baseline on too few dialogues (5 of the 20 needed), so the"),
        (19, "Runs differ from the baseline on too few dialogues (19 of the 20 needed), so the"),
        (20, "With 40 dialogues, the detectable difference is"),
    ],
)
def test_a_detectable_difference_needs_twenty_discordant_dialogues(
    runs: list[Predictions], kept: int, note: str
) -> None:
    """With fewer of them, the power at 2.8 standard errors is far from 80 %.

    The permutation test has about the power of the t test, which is known: 0.76 with twenty
    dialogues and 0.70 with ten. Simulated with normal differences, the permutation test has 0.75,
    0.70, and 0.45 with six. With five its power is 0, because the smallest p-value is 2 / 2^5.
    """
    for dialogues, power in ((20, 0.757), (10, 0.704)):
        critical = student.ppf(0.975, dialogues - 1)
        assert nct.sf(critical, dialogues - 1, 2.8016) == pytest.approx(power, abs=1e-3)
    masks = runs[2].corpus.gold.copy()
    # Different numbers of labels are missing, so that the difference varies.
    masks[: 3 * kept : 3] = 0
    masks[1 : 3 * kept : 6] = 0
    pair = [runs[2], make_predictions(runs[2].corpus, masks)]
    assert compare(pair, names=[*"ab"], **QUICK).power_note.startswith(note)


def test_without_a_test_there_is_no_detectable_difference() -> None:
    corpus = make_corpus([[("U", AO if row < 19 else 0), ("U", 0)] for row in range(60)])
    masks = np.where(np.arange(120) % 7 < 3, AO, 0)
    pair = [make_predictions(corpus, each) for each in (corpus.gold, masks)]
    found = compare(pair, names=[*"ab"], **QUICK)
    assert found.to_frame()["detectable"].isna().all()
    assert found.power_note.startswith("Fewer than 20 labels are gold, so the detectable")


def test_the_frame_has_differences_of_the_scores_of_scikit_learn(
    found: Comparison, runs: list[Predictions]
) -> None:
    frame = found.to_frame()
    assert len(frame) == 2 * (6 + len(LABELS))
    truth = bits(runs[0].corpus.gold)
    for name, run in zip(found.names[1:], runs[1:], strict=True):
        turns = frame[(frame["level"] == "turn") & (frame["system"] == name)].set_index("score")
        guess = bits(run.masks)
        for average in ("micro", "macro"):
            score = f1_score(truth, guess, average=average, zero_division=0.0)
            row = turns.loc[f"{average}_f1"]
            # The baseline predicts nothing.
            assert (row["baseline_score"], row["own_score"]) == pytest.approx((0, score))
            assert row["value"] == pytest.approx(score)
        labels = turns.loc["f1"]
        assert labels["label"].tolist() == [*LABELS]
        each = f1_score(truth, guess, average=None, zero_division=0.0)
        # The F1 of a label that is never gold is undefined.
        each[truth.sum(axis=0) == 0] = np.nan
        assert labels["value"].to_numpy() == pytest.approx(each, nan_ok=True)
        never = labels[labels["support"] == 0]
        assert never[["low", "high", "error", "p"]].isna().all(axis=None)
        assert labels["support"].tolist() == truth.sum(axis=0).tolist()
    assert set(frame["signature"]) == {str(s) for s in found.signatures.values()}


def ranks_by_hand(competitors: list[Predictions], drawn: list[int]) -> list[tuple[int, int]]:
    """Counts the best and worst rank of each run over some dialogues."""
    scores = []
    for run in competitors:
        tp = errors = 0
        for dialogue in drawn:
            own = run.corpus.dialogue_of == dialogue
            for gold, predicted in zip(run.corpus.gold[own], run.masks[own], strict=True):
                tp += (int(gold) & int(predicted)).bit_count()
                errors += (int(gold) ^ int(predicted)).bit_count()
        scores.append(2 * tp / (2 * tp + errors) if tp + errors else 0.0)
    return [
        (1 + sum(other > own for other in scores), sum(other >= own for other in scores))
        for own in scores
    ]


def ranges_by_hand(competitors: list[Predictions]) -> list[tuple[int, int, int]]:
    """Gives the rank of each run, and the quantiles of its best and worst rank in draws."""
    picks = np.random.default_rng(SEED).integers(0, N, size=(DRAWS, N))
    drawn = np.array([ranks_by_hand(competitors, pick.tolist()) for pick in picks])
    lows = np.floor(np.quantile(drawn[:, :, 0], 0.025, axis=0))
    highs = np.ceil(np.quantile(drawn[:, :, 1], 0.975, axis=0))
    ranks = [rank for rank, _ in ranks_by_hand(competitors, list(range(N)))]
    return [*zip(ranks, lows.astype(int), highs.astype(int), strict=True)]


def test_rank_ranges_equal_the_quantiles_of_ranks_counted_by_hand() -> None:
    generator = np.random.default_rng(5)
    corpus = make_corpus(
        [[("U", int(generator.choice([0, AO, SHO]))) for _ in range(4)] for _ in range(N)]
    )
    competitors = []
    for share in (0.9, 0.8, 0.6, 0.55, 0.0, 0.0):
        kept = generator.random(len(corpus.gold)) < share
        competitors.append(make_predictions(corpus, np.where(kept, corpus.gold, 0)))
    found = rank_ranges([evaluate(run, draws=DRAWS, seed=SEED) for run in competitors])
    # Systems change ranks in some draws; the last two are equal in all draws.
    expected = sorted(ranges_by_hand(competitors), key=lambda row: row[0])
    assert expected[-2:] == [(5, 5, 6), (5, 5, 6)]
    assert [low < high for _, low, high in expected[:4]] == [True] * 4
    expected_ranges = [
        (rank, f"{low}" if low == high else f"{low} to {high}") for rank, low, high in expected
    ]
    assert [*found[["rank", "ranks"]].itertuples(index=False, name=None)] == expected_ranges


def test_rank_ranges_contain_the_rank_in_the_corpus() -> None:
    gold = 0x00FF
    corpus = make_corpus([[("U", gold)]] * N)
    # Each of these adds eight labels in one dialogue: an F1 of 2 * 96 / (2 * 96 + 8) = 0.96.
    others = [np.where(np.arange(N) == place, 0xFFFF, gold) for place in range(N)]
    # This one misses a label in each dialogue: 14 / 15 = 0.93 in the corpus and in all draws. A
    # draw with a dialogue taken twice gives one of the others 2 * 96 / (2 * 96 + 16) = 0.92.
    competitors = [make_predictions(corpus, masks) for masks in (np.full(N, gold - 1), *others)]
    ranks = rank_ranges([evaluate(run, draws=DRAWS, seed=SEED) for run in competitors])
    rank, low, high = ranges_by_hand(competitors)[0]
    assert high < rank == N + 1
    assert [*ranks.iloc[-1][["rank", "ranks"]]] == [N + 1, f"{low} to {N + 1}"]
