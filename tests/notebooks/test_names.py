"""Names are text on every page, in tables and in figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import cradle_lib
from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Predictions
from cradle_lib.display.theme import Picture

from .test_notebooks import show

NAME = r"<img src=x onerror=alert(1)> $x_1$ [/x] {{evil}} `*_|\#\`"
# The second one is no mathematics, and the third one would be missing from a legend.
NAMES = (NAME, r"costs $5 and $\nothing$", "_hidden")


class Page(HTMLParser):
    """The tags and the text of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def named(corpus: Corpus, make_run: Callable[..., Predictions]) -> list[Predictions]:
    chance = np.random.default_rng(4)
    found = []
    for share, name in zip((0.2, 0.5, 0.8), NAMES, strict=True):
        masks = np.where(chance.random(len(corpus.gold)) < share, corpus.gold, 0)
        run = make_run("keyword", masks.astype(np.uint16))
        found.append(replace(run, record=run.record.model_copy(update={"name": name})))
    return found


@pytest.mark.parametrize("page", ["conventions", "errors"])
def test_a_notebook_writes_every_name_as_it_is(
    page: str, named: list[Predictions], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    monkeypatch.setattr(paths, "SHIPPED_RUNS", tmp_path)
    monkeypatch.setattr(cradle_lib, "load_corpus", lambda *_: named[0].corpus, raising=False)
    monkeypatch.setattr(cradle_lib, "stored_runs", lambda *_: named, raising=False)
    few = {"draws": 5, "permutations": 5}
    shown = show(page, few, monkeypatch)
    figure = next(item for item in shown if isinstance(item, Picture))
    written = "".join(ElementTree.fromstring(figure.svg).itertext())
    for name in NAMES:
        assert "".join(name.split()) in "".join(written.split())
    for item in shown:
        if item is not None:
            assert not {"script", "x"} & {*Page(item._repr_html_()).tags}
            assert "onerror" not in "".join(Page(item._repr_html_()).tags)
    tables = "".join(Page(item._repr_html_()).text for item in shown if item is not None)
    for name in NAMES:
        assert name in tables
