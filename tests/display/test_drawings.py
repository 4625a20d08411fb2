"""Heat maps, checked in the drawing and its SVG."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from cradle_lib.display.heat_map import heat_map
from cradle_lib.display.theme import RAMP, show_figure
from cradle_lib.errors import BookError

from .markup import words

LONG = pd.DataFrame(
    [("a", "a", 3.0), ("a", "b", 1.0), ("b", "$c$", 2.0), ("none", "a", 0.0)],
    columns=["gold", "predicted", "value"],
)


def cells(axes: Axes) -> dict[tuple[float, float], Any]:
    """Returns the colours of the filled cells by position."""
    shapes = [found for found in axes.patches if isinstance(found, Rectangle) and found.get_fill()]
    return {found.get_xy(): found.get_facecolor() for found in shapes}


def framed_cells(axes: Axes) -> list[tuple[float, float]]:
    shapes = [found for found in axes.patches if isinstance(found, Rectangle)]
    return [found.get_xy() for found in shapes if not found.get_fill()]


def test_a_heat_map_has_shares_of_the_rows() -> None:
    axes = heat_map(LONG, rows="gold", columns="predicted")
    # Three of four, one of four, two of two; the row of none is empty.
    shares = {(0, 0): 0.75, (1, 0): 0.25, (2, 1): 1.0}
    assert cells(axes) == {place: RAMP(share) for place, share in shares.items()}
    shown = words(show_figure(axes, alt="a", caption="c").svg)
    assert {"75", "25", "100", "a (4)", "b (2)", "none (0)", "$c$", "gold", "predicted"} <= shown
    assert "0" not in shown


def test_differences_are_points_in_two_colours() -> None:
    points = LONG.assign(value=[0.4, -0.3, 0.001, 0.0])
    axes = heat_map(points, rows="gold", columns="predicted", difference=True)
    red, blue, neutral = (cells(axes)[place] for place in ((0, 0), (1, 0), (2, 1)))
    assert red[0] > red[2]
    assert blue[2] > blue[0]
    assert min(neutral) > 0.9
    shown = words(show_figure(axes, alt="a", caption="c").svg)
    assert {"+40", "-30", "a", "b"} <= shown
    assert not {"+0", "a (0)"} & shown


def test_equal_pairs_are_framed() -> None:
    axes = heat_map(LONG, rows="gold", columns="predicted")
    assert framed_cells(axes) == [(0, 0), (1, 1)]
    square = LONG.replace("$c$", "none")
    axes = heat_map(square, rows="gold", columns="predicted")
    assert framed_cells(axes) == [(0, 0), (1, 1), (2, 2)]


def test_each_nonzero_cell_has_a_link_at_its_position() -> None:
    linked = LONG.assign(link=[f"there.html#<{n}>&x" for n in range(4)])
    picture = show_figure(heat_map(linked, rows="gold", columns="predicted"), alt="a", caption="c")
    assert b"there.html" not in picture.svg
    links = {
        title: (address, *map(float, re.findall(r"(?:left|top|width|height):([\d.]+)%", style)))
        for address, title, style in re.findall(
            'href="([^"]*)" title="([^"]*)" style="([^"]*)"', picture.links
        )
    }
    assert {*links} == {
        "gold a, predicted a: 3",
        "gold a, predicted b: 1",
        "gold b, predicted $c$: 2",
    }
    address, left, top, width, height = links["gold a, predicted a: 3"]
    assert address == "there.html#&lt;0&gt;&amp;x"
    # The second cell is right of the first; the third is in the next row and column.
    second, third = links["gold a, predicted b: 1"], links["gold b, predicted $c$: 2"]
    assert second[1:3] == pytest.approx((left + width, top), abs=0.02)
    assert third[1:3] == pytest.approx((left + 2 * width, top + height), abs=0.02)
    # The cells fill the axes; labels are on the left and at the bottom.
    assert 0 < left < 25
    assert 90 < third[1] + third[3] <= 100
    page = picture._repr_html_()
    assert page.count('class="cradle-spot" tabindex="0" href="there.html#&lt;') == 1
    assert page.count('class="cradle-spot" tabindex="-1" href="there.html#&lt;') == 2


def test_labels_have_the_order_of_their_categories() -> None:
    names = ["none", "b", "a", "$c$", "unseen"]
    kind = pd.CategoricalDtype(names)
    frame = LONG.astype({"gold": kind, "predicted": kind})
    axes = heat_map(frame, rows="gold", columns="predicted")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == names
    assert axes.get_yticklabels()[4].get_text() == "unseen (0)"


def test_duplicate_cells_of_a_heat_map_are_refused() -> None:
    with pytest.raises(BookError, match="occurs twice"):
        heat_map(pd.concat([LONG, LONG]), rows="gold", columns="predicted")
