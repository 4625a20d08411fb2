"""Tables of scores and errors, compared with scikit-learn and with the published values."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.metrics import f1_score, jaccard_score, precision_score, recall_score

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Predictions
from cradle_lib.labels import BITS, LABELS, short
from cradle_lib.published import published_table
from cradle_lib.reporting.error_tables import confusion_table, error_table
from cradle_lib.reporting.runs import comparable, whole_runs, with_same_dialogues
from cradle_lib.reporting.score_tables import (
    outcome_table,
    per_label_table,
    record_table,
    scores_table,
)
from cradle_lib.reporting.tables import MISSING, UNDEFINED, Row, Table
from cradle_lib.scoring.conventions import Level
from cradle_lib.scoring.evaluate import Evaluation, evaluate


def evaluations(runs: list[Predictions], level: Level = "turn") -> list[Evaluation]:
    return [evaluate(run, level=level, draws=50) for run in runs]


def rows_named(table: Table, name: str) -> list[Row]:
    return [row for row in table.rows if row.cells[0].text == name]


def bits(masks: np.ndarray) -> np.ndarray:
    return np.array([[bool(mask & bit) for bit in BITS.values()] for mask in masks])


def test_scores_are_those_of_scikit_learn(runs: list[Predictions]) -> None:
    run = runs[1]
    table = scores_table([run], evaluations([run]))
    gold, tagged = bits(run.corpus.gold), bits(run.masks)
    readable = run.outcomes == 0
    # Two empty sets have Jaccard 1; scikit-learn is asked for the same. An answer that
    # can't be read tags nothing and earns nothing for it.
    jaccard = [
        jaccard_score(g[None], t[None], average="samples", zero_division=1) * (ok or g.any())
        for g, t, ok in zip(gold, tagged, readable, strict=True)
    ]
    exact = [
        (g == t).all() and (ok or g.any()) for g, t, ok in zip(gold, tagged, readable, strict=True)
    ]
    expected = [np.mean(exact), np.mean(jaccard)]
    for average in ("micro", "macro"):
        for score in (precision_score, recall_score, f1_score):
            expected.append(score(gold, tagged, average=average, zero_division=0))
    cells = rows_named(table, run.record.name)[0].cells[1:-1]
    assert [cell.value for cell in cells] == pytest.approx([100 * value for value in expected])
    for cell in cells:
        assert cell.interval is not None
        assert cell.interval[0] <= cell.value <= cell.interval[1]


def test_unread_answers_are_counted_beside_the_scores(runs: list[Predictions]) -> None:
    table = scores_table(runs[:2], evaluations(runs[:2]))
    # 40 dialogues with 4 user turns; every tenth answer of the second model is unparsed.
    shown = [rows_named(table, run.record.name)[0].cells[-1].text for run in runs[:2]]
    assert shown == ["0", "16"]


@pytest.mark.parametrize("level", ["turn", "dialogue", "confirm"])
def test_every_published_score_of_a_level_is_shown(runs: list[Predictions], level: Level) -> None:
    table = scores_table(runs, evaluations(runs, level))
    shown = {cell.text for row in table.rows if row.published for cell in row.cells}
    shown.update(word for note in table.notes for word in note.split())
    stated = [v for key, v in published_table().items() if key.startswith(f"result.{level}.")]
    assert stated
    assert {f"{value.value:.2f}" for value in stated} <= shown


def test_what_the_paper_does_not_state_is_a_dash_and_never_the_best(
    runs: list[Predictions],
) -> None:
    table = scores_table(runs, evaluations(runs))
    claude = rows_named(table, "Claude")[0]
    titles = [column.title for column in table.columns]
    assert claude.cells[titles.index("Micro F1")].text == "56.85"
    assert claude.cells[titles.index("Exact match")].text == MISSING
    assert not any(cell.best for row in table.rows if row.published for cell in row.cells)


def test_reference_points_stand_right_below_their_baseline(runs: list[Predictions]) -> None:
    table = scores_table(runs, evaluations(runs))
    names = [row.cells[0].text for row in table.rows]
    below = table.rows[names.index("Model <always-none>") + 1]
    assert "measured by others" in below.cells[0].text
    assert below.cells[1].text == "84.47"


def test_a_run_of_a_published_system_has_the_papers_values_right_below(
    corpus: Corpus, make_run: Callable[..., Predictions]
) -> None:
    run = make_run("qwen3-32b", corpus.gold)
    table = scores_table([run], evaluations([run]))
    first, second = table.rows[:2]
    assert first.group == second.group
    assert second.cells[0].text == "Qwen3-32B: published"
    assert "43.75" in [cell.text for cell in second.cells]
    # It is not listed a second time among the systems that were not run.
    assert not rows_named(table, "Qwen3-32B")


def test_rows_over_other_dialogues_stand_apart_and_are_not_ranked_together(
    runs: list[Predictions],
) -> None:
    table = scores_table(runs, evaluations(runs))
    sample = rows_named(table, runs[2].record.name)[0]
    whole = rows_named(table, runs[1].record.name)[0]
    assert "40 dialogues, 160 user turns" in whole.group
    assert "4 dialogues, 16 user turns of 160" in sample.group
    # Alone under its heading, it can't be the best of anything.
    assert not any(cell.best for cell in sample.cells)
    assert any(cell.best for cell in whole.cells)
    assert len([note for note in table.notes if note.startswith("Signature")]) == 2


def test_samples_are_compared_with_the_same_dialogues_of_the_other_models(
    runs: list[Predictions],
) -> None:
    extended = with_same_dialogues(runs)
    groups = comparable(extended, extended)
    assert [[run.record.model for run, _ in group] for _, group in groups] == [
        ["always-none", "keyword"],
        ["always-none", "keyword", "smollm2-135m"],
    ]
    assert len({run.corpus.fingerprint for run, _ in groups[1][1]}) == 1
    assert whole_runs(extended) == extended[:2]


def test_exact_match_is_left_out_above_turn_level(runs: list[Predictions]) -> None:
    titles = [c.title for c in scores_table(runs, evaluations(runs, "dialogue")).columns]
    assert "Exact match" not in titles


def test_evaluations_of_two_levels_are_refused(runs: list[Predictions]) -> None:
    mixed = [evaluate(runs[0], draws=0), evaluate(runs[1], level="dialogue", draws=0)]
    with pytest.raises(ValueError, match="one level"):
        scores_table(runs[:2], mixed)


def test_per_label_scores_are_those_of_scikit_learn(runs: list[Predictions]) -> None:
    run = runs[1]
    table = per_label_table([run], evaluations([run]))
    gold, tagged = bits(run.corpus.gold), bits(run.masks)
    expected = f1_score(gold, tagged, average=None, zero_division=0)
    support = gold.sum(axis=0)
    for row, label, f1, times in zip(table.rows, LABELS, expected, support, strict=True):
        assert row.cells[0].text == short(label)
        assert row.cells[1].value == times
        if times:
            assert row.cells[2].value == pytest.approx(100 * f1)
        else:
            assert row.cells[2].text == UNDEFINED


def test_the_published_per_label_score_stands_in_its_own_column(runs: list[Predictions]) -> None:
    table = per_label_table(runs, evaluations(runs))
    assert table.columns[-1].title == "Published: Qwen3-32B, fine-tuned"
    shown = {row.cells[0].text: row.cells[-1].text for row in table.rows}
    assert shown["alert_past"] == "34.8"
    assert {value for label, value in shown.items() if label != "alert_past"} == {MISSING}


def test_a_sample_is_outside_the_contest_of_a_label(runs: list[Predictions]) -> None:
    table = per_label_table(runs, evaluations(runs))
    assert "(4 dialogues)" in table.columns[4].title
    assert not any(row.cells[4].best for row in table.rows)
    assert any(row.cells[3].best for row in table.rows)


def test_outcomes_are_never_merged(runs: list[Predictions]) -> None:
    lines = list(csv.reader(io.StringIO(outcome_table(runs).to_csv())))
    assert lines[0][1:] == ["Dialogues", "User turns", "ok", "unparsed", "refused", "failed"]
    assert lines[2][1:] == ["40", "160", "144", "16", "0", "0"]


def test_the_record_is_complete(runs: list[Predictions]) -> None:
    shown = {row.cells[0].text for row in record_table(runs[0]).rows}
    fields = {name.replace("_", " ") for name in type(runs[0].record).model_fields}
    assert shown == fields | {"identity"}


def test_names_are_escaped(runs: list[Predictions]) -> None:
    for table in (scores_table(runs, evaluations(runs)), outcome_table(runs), error_table(runs)):
        assert "Model &lt;keyword&gt;" in table._repr_html_()
        assert "<keyword>" not in table._repr_html_()


def test_errors_are_counted_as_a_loop_over_labels_counts_them(runs: list[Predictions]) -> None:
    run = runs[1]
    gold, tagged = bits(run.corpus.gold), bits(run.masks)
    row = rows_named(error_table(runs), run.record.name)[0]
    values = dict(zip([c.title for c in error_table(runs).columns], row.cells, strict=True))
    assert values["False positives"].value == (tagged & ~gold).sum()
    assert values["False negatives"].value == (gold & ~tagged).sum()
    assert values["False alert_ongoing"].value == (tagged & ~gold)[:, 0].sum()
    negative = ~gold.any(axis=1)
    share = tagged[negative].any(axis=1).mean()
    assert values["Flagged without gold (%)"].value == pytest.approx(100 * share)


def test_every_published_error_count_is_shown(runs: list[Predictions]) -> None:
    table = error_table(runs)
    shown = {cell.text for row in table.rows if row.published for cell in row.cells}
    shown.update(word for note in table.notes for word in note.split())
    stated = [v.value for key, v in published_table().items() if key.startswith("errors.")]
    assert {f"{value:,.10g}" for value in stated} <= shown


def test_every_published_confusion_is_shown_as_percent(runs: list[Predictions]) -> None:
    table = confusion_table(runs)
    shown = {(row.cells[0].text, cell.text) for row in table.rows for cell in row.cells[-2:]}
    assert shown == {
        ("alert_ongoing found", "27"),
        ("alert_ongoing found", "45"),
        ("alert_past found", "14"),
        ("alert_past found", "31"),
        ("SI_passive_ongoing found", "25"),
        ("SI_passive_ongoing found", "53"),
        ("CA_ongoing given no tag", "36"),
        ("CA_ongoing given no tag", "8"),
        ("DV_ongoing taken for DV_past", "23"),
        ("DV_ongoing taken for DV_past", "20"),
    }


def test_a_perfect_run_is_perfect_in_the_confusion_table(
    corpus: Corpus, make_run: Callable[..., Predictions]
) -> None:
    table = confusion_table([make_run("keyword", corpus.gold)])
    assert [row.cells[1].text for row in table.rows] == ["100", "100", "100", "0", "0"]
