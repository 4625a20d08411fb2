"""Figures with 32 systems: no text covers another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import NDArray

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Predictions
from cradle_lib.display import theme

from .test_notebooks import show

SYSTEMS = 32
# Points of a figure by which the boxes of two texts may overlap; letters have some space around.
TOLERATED = 3


def systems(corpus: Corpus, make_run: Callable[..., Predictions]) -> list[Predictions]:
    """Makes systems with long names, each worse and with more false positives than the last."""
    random = np.random.default_rng(0)
    found = []
    for number in range(SYSTEMS):
        masks: NDArray[np.uint16] = corpus.gold.copy()
        masks[random.random(len(masks)) < number / 2 / SYSTEMS] = 0
        masks[random.random(len(masks)) < number / 3 / SYSTEMS] |= 1
        made = make_run(f"m{number}", masks)
        name = f"System-{number} with 32 billion parameters, constrained"
        found.append(replace(made, record=made.record.model_copy(update={"name": name})))
    return found


def overlaps(figure: Figure) -> list[tuple[str, str]]:
    """Lists the pairs of visible texts that overlap."""
    figure.draw_without_rendering()
    texts = [
        text
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and text.get_alpha() != 0
    ]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    return [
        (first, second)
        for (first, one), (second, other) in combinations(boxes, 2)
        if min(one.x1, other.x1) - max(one.x0, other.x0) > TOLERATED
        and min(one.y1, other.y1) - max(one.y0, other.y0) > TOLERATED
    ]


@pytest.mark.parametrize("page", ["home", "alarm-burden", "errors", "per-label"])
def test_names_of_many_systems_do_not_overlap(
    page: str,
    corpus: Corpus,
    make_run: Callable[..., Predictions],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, drawn = [], []
    draw = theme._svg

    def keep(figure: Figure) -> bytes:
        # It changes the labels of some axes.
        svg = draw(figure)
        drawn.append(figure)
        found.extend(overlaps(figure))
        return svg

    monkeypatch.setattr(theme, "_svg", keep)
    show(page, {"draws": 5}, corpus, systems(corpus, make_run))
    assert drawn
    assert found == []
