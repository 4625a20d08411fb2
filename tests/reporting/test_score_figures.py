"""Figures of scores: their marks are measured in the SVG and compared with the scores."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.metrics import multilabel_confusion_matrix

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Predictions
from cradle_lib.labels import BITS
from cradle_lib.reporting.figures import LIGHT
from cradle_lib.reporting.score_figures import confusion_figure, model_figure, per_label_figure
from cradle_lib.scoring.evaluate import evaluate

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"


def words(svg: bytes) -> list[str]:
    root = ElementTree.fromstring(svg)
    return ["".join(node.itertext()).strip() for node in root.iter(f"{SVG}text")]


def places(svg: bytes, colour: str) -> list[float]:
    """Horizontal positions of the markers with this fill."""
    return [
        float(node.get("x", "nan"))
        for node in ElementTree.fromstring(svg).iter(f"{SVG}use")
        if f"fill: {colour.lower()}" in node.get("style", "").lower()
    ]


def test_dots_stand_where_the_scores_are(runs: list[Predictions]) -> None:
    evaluations = [evaluate(run, draws=50) for run in runs[:2]]
    figure = model_figure(runs[:2], evaluations, "exact_match")
    low, high = (float(e.scores.exact_match) for e in evaluations)
    first, second = places(figure.light, LIGHT.second)
    # The axis runs from 0 to 100 over its grid lines: find their ends in the drawing.
    lines = [
        [float(x) for x in re.findall(r"[ML] (-?[\d.]+) ", path.get("d", ""))]
        for path in ElementTree.fromstring(figure.light).iter(f"{SVG}path")
        if f"stroke: {LIGHT.faint}" in path.get("style", "")
    ]
    left, right = min(map(min, lines)), max(map(max, lines))
    assert (first - left) / (right - left) == pytest.approx(low, abs=0.005)
    assert (second - left) / (right - left) == pytest.approx(high, abs=0.005)


def test_models_over_other_dialogues_have_a_panel_of_their_own(runs: list[Predictions]) -> None:
    figure = model_figure(runs, [evaluate(run, draws=50) for run in runs])
    shown = words(figure.light)
    assert "40 dialogues" in shown
    assert "4 dialogues" in shown
    assert "Micro F1 at turn level" in figure.caption
    assert "diamonds" not in figure.caption


def test_a_published_score_is_a_diamond_and_said_to_be_one(
    corpus: Corpus, make_run: Callable[..., Predictions]
) -> None:
    run = make_run("qwen3-32b", corpus.gold)
    figure = model_figure([run], [evaluate(run, draws=10)])
    assert "diamonds are published" in figure.caption


def test_every_label_has_a_row_and_every_model_a_name(runs: list[Predictions]) -> None:
    figure = per_label_figure(runs, [evaluate(run, draws=50) for run in runs])
    shown = words(figure.light)
    assert "SI_passive_ongoing" in shown
    assert runs[1].record.name in shown
    assert "40 dialogues of surrogate-test" in figure.caption


def test_a_label_without_gold_has_no_dot(
    corpus: Corpus, make_run: Callable[..., Predictions]
) -> None:
    run = make_run("keyword", corpus.gold)
    figure = per_label_figure([run], [evaluate(run, draws=10)])
    support = sum(bool((corpus.gold & bit).any()) for bit in BITS.values())
    # One marker more stands in the legend.
    assert len(places(figure.light, LIGHT.second)) == support + 1
    assert "does best on" in figure.alt


def test_the_confusion_map_shows_recall_on_its_diagonal(runs: list[Predictions]) -> None:
    run = runs[1]
    gold, tagged = (
        np.array([[bool(m & bit) for bit in BITS.values()] for m in masks])
        for masks in (run.corpus.gold, run.masks)
    )
    found = multilabel_confusion_matrix(gold, tagged)[:, 1, 1]
    figure = confusion_figure(run)
    assert figure.wide
    assert f"Of {gold.sum()} gold labels {found.sum()} were tagged as they are" in figure.alt
    support = gold.sum(axis=0)
    shown = words(figure.light)
    assert f"alert_ongoing ({support[0]})" in shown
    shares = {f"{100 * n / of:.0f}" for n, of in zip(found, support, strict=True) if n}
    assert shares <= set(shown)


def test_a_run_without_tags_misses_everything(runs: list[Predictions]) -> None:
    figure = confusion_figure(runs[0])
    labels = int(sum(int(mask).bit_count() for mask in runs[0].corpus.gold))
    assert f"0 were tagged as they are, {labels} were given no tag and 0 another one" in figure.alt


def test_no_text_of_a_dialogue_or_markup_reaches_an_alt_text(runs: list[Predictions]) -> None:
    for figure in (confusion_figure(runs[1]), model_figure(runs[:1], [evaluate(runs[0], draws=5)])):
        assert "<keyword>" not in figure._repr_html_()
        assert "alert('x')" not in figure.alt
