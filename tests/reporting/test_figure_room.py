"""No text of a figure leaves it, however long the names of the runs are."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from cradle_lib.reporting import figures
from cradle_lib.reporting.figures import Theme, bare, legend, render, wrapped

NAMES = ("SmolLM2-135M-Instruct, constrained", "Qwen3-235B-A22B-Thinking-2507, our fine-tuned one")


def outside(canvas: Canvas) -> list[str]:
    """What is drawn, at least in part, where the figure has ended: legends and panels."""
    renderer = FigureCanvasAgg(canvas).get_renderer()
    canvas.draw_without_rendering()
    frame, found = canvas.bbox, []
    for artist in (*canvas.legends, *canvas.axes):
        box = artist.get_tightbbox(renderer)
        assert box is not None
        if min(box.x0 - frame.x0, box.y0 - frame.y0, frame.x1 - box.x1, frame.y1 - box.y1) < -1:
            found.append(f"{artist}: {box} in {frame}")
    return found


@pytest.fixture
def canvases(monkeypatch: pytest.MonkeyPatch) -> list[Canvas]:
    """Every canvas that is drawn from here on."""
    seen: list[Canvas] = []
    drawn = figures.drawn

    def watched(*arguments: Any) -> Canvas:
        seen.append(drawn(*arguments))
        return seen[-1]

    monkeypatch.setattr(figures, "drawn", watched)
    return seen


def test_a_name_that_is_not_broken_is_caught(canvases: list[Canvas]) -> None:
    def draw(canvas: Canvas, theme: Theme) -> None:
        axes = canvas.subplots()
        for name in NAMES:
            axes.plot([0, 1], label=name)
        canvas.legend(loc="outside upper left", ncols=2)
        bare(axes)

    render(draw, height=3, alt="a", caption="c")
    assert outside(canvases[0])


def test_a_legend_names_the_first_panel_in_few_columns(canvases: list[Canvas]) -> None:
    def draw(canvas: Canvas, theme: Theme) -> None:
        for axes in canvas.subplots(2, 1):
            for name in (*NAMES, "short"):
                axes.plot([0, 1], label=name)
        legend(canvas)

    render(draw, height=4, alt="a", caption="c")
    (found,) = canvases[0].legends
    texts = [text.get_text() for text in found.get_texts()]
    assert [text.replace("-\n", "-").replace("\n", " ") for text in texts] == [*NAMES, "short"]
    assert outside(canvases[0]) == []


def test_a_name_is_broken_at_spaces_and_hyphens_only() -> None:
    assert wrapped("one two", 0.4) == "one\ntwo"
    assert wrapped("") == ""
    assert wrapped("Donaudampfschiff", 0.2) == "Donaudampfschiff"
    for name in NAMES:
        assert wrapped(name).count("\n") >= 1
        assert wrapped(name).replace("-\n", "-").replace("\n", " ") == name
