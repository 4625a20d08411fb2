"""Labels of points: none is lost, and none covers another label or a mark."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from cradle_lib.display.point_labels import label_points
from cradle_lib.display.theme import theme


@pytest.mark.parametrize("log", [False, True])
def test_labels_of_close_points_do_not_overlap(log: bool) -> None:
    chance = np.random.default_rng(3)
    names = [f"A system with a long name, number {n}" for n in range(8)]
    points = pd.DataFrame({"cost": 5 + chance.random(8), "value": chance.random(8)}, names)
    with theme():
        figure, axes = pyplot.subplots()
        axes.scatter(points["cost"], points["value"])
        axes.set_ylim(0, 1)
        if log:
            axes.set_xscale("log")
        axes.vlines([points["cost"].max()], [0.0], [1.0])
        label_points(axes, points, "cost")
        # Layout as drawn.
        figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert [" ".join(text.get_text().split()) for text in axes.texts] == names
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    marks = axes.transData.transform(points.to_numpy())
    assert not any(box.contains(*mark) for box in boxes for mark in marks)
    pyplot.close(figure)


def test_labels_do_not_cover_intervals_if_there_is_room() -> None:
    points = pd.DataFrame({"cost": [1.0, 1.1], "value": [0.5, 0.52]}, ["one", "two"])
    with theme():
        figure, axes = pyplot.subplots()
        axes.set(xlim=(0, 3), ylim=(0, 1))
        for point in points.itertuples():
            axes.vlines(point.cost, point.value - 0.1, point.value + 0.1)
        axes.hlines(0.5, float("nan"), float("nan"))
        label_points(axes, points, "cost")
        figure.draw_without_rendering()
    for text in axes.texts:
        box = text.get_window_extent()
        for cost, value in points.to_numpy():
            heights = np.linspace(value - 0.1, value + 0.1, 50)
            places = axes.transData.transform([(cost, height) for height in heights])
            assert not any(box.contains(*place) for place in places)
    pyplot.close(figure)
