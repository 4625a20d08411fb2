"""Names beside points: none is lost, and none covers another one or a mark."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from cradle_lib.display.point_labels import label_points
from cradle_lib.display.theme import theme


@pytest.mark.parametrize("log", [False, True])
def test_names_of_points_that_are_close_do_not_overlap(log: bool) -> None:
    chance = np.random.default_rng(3)
    names = [f"A system with a long name, number {n}" for n in range(8)]
    points = pd.DataFrame({"cost": 5 + chance.random(8), "value": chance.random(8)}, names)
    with theme():
        figure, axes = pyplot.subplots()
        axes.scatter(points["cost"], points["value"])
        axes.set_ylim(0, 1)
        if log:
            axes.set_xscale("log")
        label_points(axes, points, "cost")
    boxes = [text.get_window_extent() for text in axes.texts]
    assert [" ".join(text.get_text().split()) for text in axes.texts] == names
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    marks = axes.transData.transform(points.to_numpy())
    assert not any(box.contains(*mark) for box in boxes for mark in marks)
    pyplot.close(figure)
