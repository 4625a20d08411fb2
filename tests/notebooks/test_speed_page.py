"""The page of speed, and what the README says of the same runs."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any
from xml.etree import ElementTree

import pytest

import cradle_lib
from cradle_lib import paths
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection.journal import read_journal
from cradle_lib.display.notice import Notice
from cradle_lib.display.table import Table
from cradle_lib.display.theme import Picture
from cradle_lib.labels import labels_of

from .test_notebooks import show

SVG = "{http://www.w3.org/2000/svg}"
FREE, CONSTRAINED = "smollm2-135m", "smollm2-135m-constrained"
TUNED = "smollm2-135m-tuned"


def counted(model: str) -> tuple[int, int, int, int]:
    """Answers, unreadable ones, tags and right tags of a run that ships, by its journal alone."""
    _, answers = read_journal(paths.SHIPPED_RUNS / "surrogate-test" / f"{model}.jsonl")
    gold = {
        (dialogue.id, turn.turn_id): Counter(labels_of(turn.mask))
        for dialogue in load_corpus()
        for turn in dialogue.turns
    }
    tags = [(Counter(labels_of(a.mask)), gold[a.dialogue, a.turn]) for a in answers]
    return (
        len(answers),
        sum(a.outcome != "ok" for a in answers),
        sum(given.total() for given, _ in tags),
        sum((given & wanted).total() for given, wanted in tags),
    )


def page(monkeypatch: pytest.MonkeyPatch, **values: Any) -> list[Any]:
    return show("speed", values, monkeypatch)


def test_the_page_says_how_often_an_answer_is_unusable_and_a_tag_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    able, *_ = [item for item in page(monkeypatch) if isinstance(item, Table)]
    measured = (TUNED, FREE, CONSTRAINED)
    for row, model in zip(able.frame.to_dict("records"), measured, strict=True):
        answers, unread, tags, right = counted(model)
        assert (row["answers"], row["unusable"]) == (answers, unread)
        assert row["share"] == pytest.approx(unread / answers)
        assert (row["tags"], row["right"]) == (tags, right)


def test_models_that_were_not_run_are_a_sentence(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = corpus.subset([0], "elsewhere")
    monkeypatch.setattr(cradle_lib, "load_corpus", lambda *_: elsewhere)
    told = [item.message for item in page(monkeypatch) if isinstance(item, Notice)]
    assert told[0] == f"None of {TUNED}, {FREE}, {CONSTRAINED} was run over elsewhere."


def test_the_picture_of_the_cache_fits_a_phone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [figure] = [item for item in page(monkeypatch) if isinstance(item, Picture)]
    texts = ElementTree.fromstring(figure.svg).iter(f"{SVG}text")
    words = {"".join(node.itertext()) for node in texts}
    assert {"in the cache", "computed now", "rolled back later", "one forward pass"} <= words
    assert not figure.wide


def test_the_readme_says_the_same_of_the_model_that_ships() -> None:
    readme = " ".join((paths.ROOT / "README.md").read_text(encoding="utf-8").split())
    said = re.search(
        r"Untrained, ([\d,]+) of its ([\d,]+) free answers are unreadable, and ([\d,]+) of the "
        r"([\d,]+) labels that it predicts under constrained decoding are correct",
        readme,
    )
    assert said is not None
    answers, unread, _, _ = counted(FREE)
    _, _, tags, right = counted(CONSTRAINED)
    assert said.groups() == (f"{unread:,}", f"{answers:,}", f"{right:,}", f"{tags:,}")
    tuned = re.search(r"it predicts ([\d,]+) labels, of which ([\d,]+) are correct", readme)
    assert tuned is not None
    _, unread, tags, right = counted(TUNED)
    assert (unread, *tuned.groups()) == (0, f"{tags:,}", f"{right:,}")


@pytest.mark.parametrize("name", ["README.md", "book/large-models.md", "book/add-a-model.md"])
def test_whoever_recommends_the_wave_engine_says_where_it_has_been_run(name: str) -> None:
    text = " ".join((paths.ROOT / name).read_text(encoding="utf-8").split())
    assert "engine: wave" in text
    assert "has not been run on a GPU by this project" in text
