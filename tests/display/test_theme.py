"""Figures: colours with simulated colour vision, markup, and text."""

from __future__ import annotations

import base64
from itertools import combinations
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pandas as pd
import pytest
import seaborn as sns
from matplotlib import pyplot
from matplotlib.axes import Axes
from numpy.typing import NDArray

from cradle_lib.display.theme import INK, PALETTE, RAMP, WIDTH, Picture, show_figure, theme
from cradle_lib.errors import BookError

from .markup import Markup, words

SVG = "{http://www.w3.org/2000/svg}"
NAMES = ["cost $1 and $2", "<script>&amp;", "plain_text"]
LIGHT_PAGE = "#ffffff"
DARK_PAGE = "#14181e"


def bars() -> Axes:
    with theme():
        _, axes = pyplot.subplots()
        sns.barplot(pd.DataFrame({"name": NAMES, "value": [1, 2, 3]}), x="value", y="name", ax=axes)
    assert isinstance(axes, Axes)
    return axes


def shown(axes: Axes) -> Picture:
    return show_figure(axes, alt='Bars, "quoted" <b>.', caption="Three <bars>.")


# Colours.


def linear(colour: str) -> NDArray[np.float64]:
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Computes the contrast ratio of WCAG 2, from its definition."""
    low, high = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))
    return (high + 0.05) / (low + 0.05)


# Machado, Oliveira and Fernandes (2009), Table 1, severity 1; linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}  # fmt: skip


def lab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    """Converts linear RGB to CIELAB under D65, from its definition."""
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    t = np.array(to_xyz) @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def on_dark_page(colour: str) -> str:
    """Computes the colour on a dark page, with the matrices of CSS's Filter Effects Module."""
    inverted = 1 - np.array(matplotlib.colors.to_rgb(colour))
    # A hue rotation by 180 degrees: sine 0, cosine -1.
    luminance = np.array([[0.213, 0.715, 0.072]] * 3)
    matrix = 2 * luminance - np.eye(3)
    return matplotlib.colors.to_hex(np.clip(matrix @ inverted, 0, 1))


@pytest.mark.parametrize("page", ["light", "dark"])
@pytest.mark.parametrize("vision", VISION)
def test_ten_colours_are_distinguishable_with_any_colour_vision(vision: str, page: str) -> None:
    colours = PALETTE if page == "light" else tuple(on_dark_page(colour) for colour in PALETTE)
    assert len(set(colours)) == 10
    seen = [lab(np.array(VISION[vision]) @ linear(colour)) for colour in colours]
    closest = min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2))
    # A difference of 2.3 is just noticeable; seaborn's colour-blind palette reaches 4.
    assert closest > 20


def test_text_and_marks_have_enough_contrast_on_both_pages() -> None:
    assert contrast(INK, LIGHT_PAGE) >= 7
    assert contrast(on_dark_page(INK), DARK_PAGE) >= 7
    for colour in PALETTE:
        assert contrast(colour, LIGHT_PAGE) >= 3
        assert contrast(on_dark_page(colour), DARK_PAGE) >= 3


def test_text_has_enough_contrast_on_every_shade_of_the_ramp() -> None:
    for share in np.linspace(0, 1, 11):
        shade = matplotlib.colors.to_hex(RAMP(share))
        assert contrast(INK, shade) >= 4.5
        assert contrast(on_dark_page(INK), on_dark_page(shade)) >= 4.5


# Markup.


def test_names_are_drawn_unchanged() -> None:
    picture = shown(bars())
    assert set(NAMES) <= words(picture.svg)
    assert not ElementTree.fromstring(picture.svg).findall(f".//{SVG}script")


def test_a_picture_has_its_drawing_and_alternative_text() -> None:
    picture = shown(bars())
    parsed = Markup(picture._repr_html_())
    assert parsed.tags == {"figure", "img", "figcaption"}
    [image] = parsed.all("img")
    assert image["alt"] == 'Bars, "quoted" <b>.'
    assert base64.b64decode((image["src"] or "").partition(";base64,")[2]) == picture.svg
    assert repr(picture) == 'Figure: Three <bars>. Bars, "quoted" <b>.'
    # The size in pixels (96 per inch), so that the layout of a page is known before it has loaded.
    box = ElementTree.fromstring(picture.svg)
    for name in ("width", "height"):
        points = float(str(box.get(name)).removesuffix("pt"))
        assert image[name] == str(round(points * 96 / 72))


def test_a_wide_figure_scrolls_in_a_focusable_box() -> None:
    with theme():
        _, axes = pyplot.subplots(figsize=(WIDTH + 1, 2))
    markup = shown(axes)._repr_html_()
    assert (
        'class="cradle-scroll" role="group" aria-label="Three &lt;bars&gt;." tabindex="0"' in markup
    )
    assert "cradle-scroll" not in shown(bars())._repr_html_()


def test_lines_can_replace_a_drawing_on_a_phone() -> None:
    picture = show_figure(bars(), alt="a", caption="b", on_phone=["one <2>", "three"])
    markup = picture._repr_html_()
    assert '<ol class="cradle-ranked"><li>one &lt;2&gt;</li><li>three</li></ol>' in markup
    assert '<figure class="cradle-figure cradle-has-list">' in markup
    assert "cradle-ranked" not in shown(bars())._repr_html_()


def test_drawings_do_not_depend_on_the_users_settings() -> None:
    before = {**matplotlib.rcParams}
    first = shown(bars())
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "text.parse_math": True}):
        assert shown(bars()) == first
    assert {**matplotlib.rcParams} == before
    assert pyplot.get_fignums() == []


def test_powers_of_ten_are_written_out() -> None:
    with theme():
        _, axes = pyplot.subplots()
        axes.plot([1, 10_000], [1, 2])
        axes.set_xscale("log")
    found = words(shown(axes).svg)
    assert {"1", "10", "100", "1,000", "10,000"} <= found
    assert not [word for word in found if "$" in word]


# What is refused.


@pytest.mark.parametrize(("alt", "caption"), [("", "c"), ("a", " ")])
def test_a_figure_without_alternative_text_or_caption_is_refused(alt: str, caption: str) -> None:
    with pytest.raises(BookError, match="needs an alternative text"):
        show_figure(bars(), alt=alt, caption=caption)
    assert pyplot.get_fignums() == []
