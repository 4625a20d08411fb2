"""Small and odd corpora: every page is built, and says where it has nothing to say."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import find_model, load_registry
from cradle_lib.detection.run import run
from cradle_lib.display.banner import Banner
from cradle_lib.display.choice import Choice
from cradle_lib.display.examples import Examples
from cradle_lib.display.explorer.explorer import Explorer
from cradle_lib.display.notice import Notice
from cradle_lib.display.table import Table
from cradle_lib.display.theme import Picture

from .test_notebooks import MODELS, SOURCES, show
from .tiny_corpora import SCRIPTS, write

# The pages of the annotators' study and of the engines stay on the surrogate in every book.
OF_THE_SURROGATE = {"adjudication", "agreement", "label-your-own", "speed"}
PAGES = [path.stem for path in SOURCES if path.stem not in OF_THE_SURROGATE]
# All pages are built for this one; for others only with a sentence below, or beside the attacks.
ODDEST = "no user turn at all"
# These show one table of the corpus; the rest comes from files.
ONE_TABLE = {"construction", "implied", "training"}
# What a page says of what it can't show.
SAID = {
    ("timing", "confirms only"): "No user turn of confirms-only has a gold alert. Not shown: Al",
    ("results", "no labels"): "No user turn of no-labels has a gold label: precision, recall a",
    ("results", "one label"): "15 of the 16 labels are never gold here: each counts as 0",
    ("results", "one dialogue"): "with 1 dialogue; no intervals",
    ("who-is-better", "one dialogue"): "No difference varies over the dialogues",
    ("alarm-burden", "every user turn labelled"): "has a gold label. Not shown: Recall agains",
    ("home", "no labels"): "no-labels has no gold labels, so no system has a score.",
    ("errors", "no labels"): "No user turn of no-labels has a gold label. Not shown: Every er",
    ("conventions", "no labels"): "No user turn of no-labels has a gold label. Not shown: Macr",
    ("errors", ODDEST): "has a user turn. Not shown: Errors at turn level",
    ("conventions", ODDEST): "has a user turn. Not shown: Macro F1 at turn",
    ("subgroups", "no labels"): "No user turn of no-labels has a gold label. Not shown: M",
    ("statistics", "twelve ordinary dialogues"): "has no train split and no dev split",
    ("statistics", "one dialogue"): "has no column for scenarios.",
    # Nothing is missing here.
    ("per-label", "twelve ordinary dialogues"): "",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path]]:
    """Gives the file of a corpus, and the folder where the baselines' runs over it are."""
    folder = tmp_path_factory.mktemp("small")
    runs = folder / "runs"

    @cache
    def make(name: str) -> tuple[Path, Path]:
        path = write(name, folder)
        corpus = load_corpus(path)
        for model in MODELS:
            run(find_model(model, load_registry()), corpus, out=runs)
        return path, runs

    return make


@pytest.mark.parametrize(
    ("page", "name"),
    [
        pytest.param(
            page,
            name,
            id=f"{page}-{name}",
            marks=[] if name == ODDEST or (page, name) in SAID else [pytest.mark.hostile],
        )
        for page in PAGES
        for name in SCRIPTS
        if page not in ONE_TABLE or name in ("one dialogue", ODDEST)
    ],
)
def test_a_page_is_built_and_says_what_it_can_not_show(
    page: str,
    name: str,
    made: Callable[[str], tuple[Path, Path]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    corpus, runs = made(name)
    monkeypatch.setattr(paths, "RUNS", runs)
    values = parameters(page, corpus, made)
    shown = show(page, values)
    assert isinstance(shown[0], Banner)
    assert any(
        isinstance(item, (Table, Picture, Choice, Explorer, Examples, Notice)) for item in shown
    )
    told: list[str] = []
    for item in shown:
        assert not re.search(r"\bnan\b|>nan|nan<|compares 0 systems", seen(item)), seen(item)[:400]
        if isinstance(item, Table):
            assert len(item.frame), item.caption
        told += [item.message] if isinstance(item, Notice) else getattr(item, "notes", ())
    assert any(SAID.get((page, name), "") in sentence for sentence in [*told, ""]), told
    if name == "twelve ordinary dialogues":
        assert not [s for s in told if re.match(r"(n/a )?(No|Every) (user turn|dialogue) of", s)]


def parameters(page: str, corpus: Path, made: Callable[[str], tuple[Path, Path]]) -> dict[str, Any]:
    # The page that learns does so from a few dialogues, not from thousands.
    taught = str(made("twelve ordinary dialogues")[0]) if page == "add-a-model" else ""
    return {
        "corpus": str(corpus),
        "training": taught,
        "models": MODELS,
        "model": "keyword",
        "draws": 50,
    }


def seen(item: Any) -> str:
    """What a reader of the page sees of it, and what one who can't see is told."""
    if isinstance(item, Picture):
        return f"{item.alt} {item.caption} {item.svg.decode()}"
    return str(item._repr_html_())
