"""The banner of pages, the help lines, and the choice of the book's corpus."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from cradle_lib import paths, strict_yaml
from cradle_lib.book.corpus import VARIABLE, BookCorpus
from cradle_lib.corpus.dialogue import Corpus, Dialogue, Turn
from cradle_lib.display.banner import SURROGATE_NOTICE, banner
from cradle_lib.errors import BookError
from cradle_lib.version import commit

from .markup import Markup


@pytest.fixture
def corpus() -> Corpus:
    turn = Turn(row=0, turn_id=0, speaker="User", text="Hello.", mask=0)
    return Corpus(name="<b>mine</b>", dialogues=(Dialogue(0, (turn,)),))


def test_a_banner_names_corpus_commit_and_signature(corpus: Corpus) -> None:
    runs = [Mock(record=Mock(), corpus=corpus, is_finished=True) for _ in range(2)]
    for run, name in zip(runs, ("One", "Two"), strict=True):
        run.record.name = name
    shown = banner(corpus=corpus, runs=runs, signature="a|b", model_annotators=True)._repr_html_()
    line, _, details = shown.partition("</summary>")
    assert "2 runs" in line
    assert "One; Two" in details
    assert "annotators of the surrogate are language models" in details
    # Markup in names is escaped.
    parsed = Markup(shown)
    assert "b" not in parsed.tags
    text = parsed.text
    assert f"<b>mine</b> ({corpus.fingerprint}), 1 dialogue" in text
    assert f"<b>mine</b> ({corpus.fingerprint}) · 2 runs · commit {commit()[0]}" in text
    assert "a|b" in text


def test_only_the_surrogate_has_a_notice(corpus: Corpus) -> None:
    surrogate = replace(corpus, synthetic=True)
    for shown in (str(banner(corpus=surrogate)), banner(corpus=surrogate)._repr_html_()):
        assert "says nothing about a model" in shown
    line = banner(corpus=surrogate)._repr_html_().partition("</summary>")[0]
    assert "<strong>Surrogate corpus</strong>" in line
    # Another corpus with the same name is not the surrogate.
    named = replace(corpus, name="surrogate-test")
    assert SURROGATE_NOTICE not in repr(banner(corpus=named))
    assert "language models" not in repr(banner(corpus=surrogate))


def test_the_environment_sets_the_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("data/surrogate/test.parquet", "data/surrogate/meta.parquet", "mine.csv"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()

    monkeypatch.delenv(VARIABLE, raising=False)
    assert BookCorpus.chosen(tmp_path) == BookCorpus("surrogate")

    monkeypatch.setenv(VARIABLE, "mine.csv")
    mine = BookCorpus.chosen(tmp_path)
    assert not mine.text
    monkeypatch.setenv("CRADLE_TEXT", "1")
    assert BookCorpus.chosen(tmp_path).text
    # A single file has no train split.
    assert (mine.name, mine.training(tmp_path)) == ("mine", "")
    assert mine.file == tmp_path / "mine.csv"

    monkeypatch.setenv(VARIABLE, "hub")
    with pytest.raises(BookError, match="cradle data fetch"):
        BookCorpus.chosen(tmp_path)

    monkeypatch.setenv(VARIABLE, "none.csv")
    with pytest.raises(BookError, match=r"none\.csv.*CRADLE_CORPUS"):
        BookCorpus.chosen(tmp_path)


def test_each_help_line_has_a_telephone_link() -> None:
    help_lines = strict_yaml.read(paths.DATA / "help_lines.yml")
    about = " ".join(line["about"] for line in help_lines["lines"])
    for crisis in ("suicid", "self-harm", "abuse", "harassment", "rape", "child"):
        assert crisis in about
    for line in help_lines["lines"]:
        assert line["ways"]
        assert line["url"].startswith("https://")
        for way in line["ways"]:
            kind, number = way["address"].split("?")[0].split(":")
            assert kind == {"call": "tel", "text": "sms"}[way["words"].split()[0]]
            # RFC 3966: a number with a country code starts with a plus.
            assert re.fullmatch(r"\+1\d{10}|\d{3,6}", number)
            assert number.removeprefix("+") in way["words"].replace("-", "")
