"""Figures, parsed as XML: what is drawn, in which colours, and that it can be read without eyes."""

from __future__ import annotations

import base64
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest

from cradle_lib.reporting.figures import DARK, LIGHT, WIDTH, Canvas, Figure, Theme, render

SVG = "{http://www.w3.org/2000/svg}"


class Images(HTMLParser):
    """Collects the attributes of img elements."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[dict[str, str]] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.found.append({key: value or "" for key, value in attrs})


def words(svg: bytes) -> list[str]:
    root = ElementTree.fromstring(svg)
    return ["".join(node.itertext()).strip() for node in root.iter(f"{SVG}text")]


def bars() -> Figure:
    def draw(canvas: Canvas, theme: Theme) -> None:
        canvas.subplots().barh(["one", "two"], [3, 5], color=theme.first)

    return render(draw, height=2, alt="Two <bars>.", caption="Bars.")


def line(canvas: Canvas, theme: Theme) -> None:
    canvas.subplots().plot([0, 1], color=theme.first)


def test_both_themes_show_the_same_text_in_their_own_ink() -> None:
    figure = bars()
    assert words(figure.light) == words(figure.dark)
    assert LIGHT.ink.encode() in figure.light
    assert LIGHT.ink.encode() not in figure.dark
    assert DARK.ink.encode() in figure.dark


def test_the_page_gets_a_light_and_a_dark_image_with_the_same_alt_text_and_a_caption() -> None:
    figure = bars()
    source = figure._repr_html_()
    images = Images(source).found
    assert [image["class"] for image in images] == ["only-light", "only-dark"]
    assert [image["alt"] for image in images] == [figure.alt, figure.alt]
    prefix = "data:image/svg+xml;base64,"
    assert [base64.b64decode(image["src"].removeprefix(prefix)) for image in images] == [
        figure.light,
        figure.dark,
    ]
    assert f"<figcaption>{figure.caption}</figcaption>" in source


def test_the_same_input_gives_the_same_bytes_and_global_state_stays_untouched() -> None:
    before = dict(matplotlib.rcParams)
    assert bars().light == bars().light
    assert dict(matplotlib.rcParams) == before


def test_a_readers_own_style_does_not_change_the_figures() -> None:
    expected = bars().light
    with matplotlib.rc_context({"font.size": 30, "axes.labelpad": 30, "svg.fonttype": "path"}):
        assert bars().light == expected


def test_pyplot_is_not_used() -> None:
    folder = Path(sys.modules["cradle_lib.reporting.figures"].__file__ or "").parent
    assert not [path for path in folder.glob("*.py") if "pyplot import" in path.read_text()]
    assert not [
        path for path in folder.glob("*.py") if "import matplotlib.pyplot" in path.read_text()
    ]


def test_a_wide_figure_scrolls_in_a_box_that_the_keyboard_reaches() -> None:
    wide = render(line, height=1, width=WIDTH + 1, alt="a", caption="c")._repr_html_()
    assert 'class="cradle-scroll" role="region" aria-label="c" tabindex="0"' in wide
    assert "cradle-scroll" not in render(line, height=1, alt="a", caption="c")._repr_html_()


def test_alt_text_and_caption_are_escaped() -> None:
    figure = render(line, height=1, alt='"><script>', caption="<script>")
    assert "<script>" not in figure._repr_html_()
    assert Images(figure._repr_html_()).found[0]["alt"] == '"><script>'


@pytest.mark.parametrize(("alt", "caption"), [("", "c"), ("a", " ")])
def test_a_figure_without_alt_text_or_caption_is_refused(alt: str, caption: str) -> None:
    with pytest.raises(ValueError, match="needs an alt text and a caption"):
        render(line, height=1, alt=alt, caption=caption)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2, written from its definition."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_marks_stand_out_from_the_page(theme: Theme) -> None:
    assert contrast(theme.ink, theme.paper) >= 7
    for colour in (theme.first, theme.second, theme.third):
        assert contrast(colour, theme.paper) >= 3


def test_a_saved_figure_is_the_light_one(tmp_path: Path) -> None:
    figure = render(line, height=1, alt="a", caption="c")
    figure.save(tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").read_bytes() == figure.light
    assert [path.name for path in tmp_path.iterdir()] == ["figure.svg"]
