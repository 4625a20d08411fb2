"""The banner over pages with numbers, the help lines, and the choice of the book's corpus."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime
from html.parser import HTMLParser
from pathlib import Path
from unittest.mock import Mock

import pytest

from cradle_lib.book.corpus import VARIABLE, BookCorpus
from cradle_lib.book.site.help_lines import HELP_LINES, load_help_lines
from cradle_lib.corpus.dialogue import Corpus, Dialogue, Turn
from cradle_lib.display.banner import SURROGATE_NOTICE, banner
from cradle_lib.errors import BookError
from cradle_lib.version import commit


class Text(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.tags: set[str] = set()
        self.feed(html)

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)


@pytest.fixture
def corpus() -> Corpus:
    turn = Turn(row=0, turn_id=0, speaker="User", text="Hello.", mask=0)
    return Corpus(name="<b>mine</b>", dialogues=(Dialogue(0, (turn,)),))


def test_a_banner_names_corpus_commit_and_signature(corpus: Corpus) -> None:
    text = " ".join(Text(banner(corpus=corpus, signature="a|b")._repr_html_()).parts)
    assert f"<b>mine</b> ({corpus.fingerprint}), 1 dialogue" in text
    assert f"<b>mine</b> ({corpus.fingerprint}) · commit {commit()[0]}" in text
    assert "a|b" in text


def test_a_banner_never_lets_a_name_become_markup(corpus: Corpus) -> None:
    assert "b" not in Text(banner(corpus=corpus)._repr_html_()).tags


def test_a_banner_counts_its_systems_on_its_line_and_names_them_in_its_fold(corpus: Corpus) -> None:
    runs = [Mock(record=Mock(), corpus=corpus, is_finished=True) for _ in range(2)]
    for run, name in zip(runs, ("One", "Two"), strict=True):
        run.record.name = name
    shown = banner(corpus=corpus, runs=runs)._repr_html_()
    line, _, fold = shown.partition("</summary>")
    assert "2 systems" in line
    assert "One, Two" in fold


def test_only_a_surrogate_gets_the_notice(corpus: Corpus) -> None:
    surrogate = replace(corpus, synthetic=True)
    for shown in (str(banner(corpus=surrogate)), banner(corpus=surrogate)._repr_html_()):
        assert "says nothing about a model" in shown
    line = banner(corpus=surrogate)._repr_html_().partition("</summary>")[0]
    assert "<strong>Surrogate corpus</strong>" in line
    # A file of somebody else's that is only called so is not ours.
    named = replace(corpus, name="surrogate-test")
    assert SURROGATE_NOTICE not in repr(banner(corpus=named))


def test_simulated_annotators_are_named_where_they_are(corpus: Corpus) -> None:
    for shown in (str, lambda made: made._repr_html_()):
        assert "annotators of the surrogate are simulated" in shown(
            banner(corpus=corpus, simulated=True)
        )
        assert "simulated" not in shown(banner(corpus=replace(corpus, synthetic=True)))


def test_the_way_to_the_real_data_is_shown_as_code(corpus: Corpus) -> None:
    shown = banner(corpus=replace(corpus, synthetic=True))._repr_html_()
    assert "<code>CRADLE_CORPUS=hub make book</code>" in shown


def test_the_help_lines_were_checked_within_the_last_half_year() -> None:
    age = datetime.now(UTC).date() - load_help_lines().verified_on

    assert age.days <= 180, "check every line, then change verified_on in data/help_lines.yml"


def test_the_help_lines_serve_more_than_one_kind_of_crisis() -> None:
    about = " ".join(line.about for line in load_help_lines().lines)

    for crisis in ("suicid", "self-harm", "abuse", "harassment", "rape", "child"):
        assert crisis in about


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "every page needs them"), ("a: [", "not YAML"), ("lines: []", "verified_on")],
)
def test_a_book_without_help_lines_is_refused(
    tmp_path: Path, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "h.yml").write_text(content, encoding="utf-8")

    with pytest.raises(BookError, match=message):
        load_help_lines(tmp_path / "h.yml")


def test_the_date_of_the_check_is_a_date() -> None:
    assert isinstance(load_help_lines().verified_on, date)


def test_the_book_is_about_the_corpus_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("data/surrogate/test.parquet", "data/surrogate/meta.parquet", "mine.csv"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()

    monkeypatch.delenv(VARIABLE, raising=False)
    assert BookCorpus.chosen(tmp_path) == BookCorpus("surrogate")

    monkeypatch.setenv(VARIABLE, "mine.csv")
    mine = BookCorpus.chosen(tmp_path)
    # A single file has no train split, and no other corpus stands in for it.
    assert (mine.name, mine.training) == ("mine", "")
    assert mine.files("test") == (str(tmp_path / "mine.csv"),)
    assert mine.files("dev") == ()
    assert BookCorpus().files("dev") == (
        "data/surrogate/dev.parquet", "data/surrogate/meta.parquet"
    )  # fmt: skip

    monkeypatch.setenv(VARIABLE, "hub")
    with pytest.raises(BookError, match="cradle data fetch"):
        BookCorpus.chosen(tmp_path)

    monkeypatch.setenv(VARIABLE, "none.csv")
    with pytest.raises(BookError, match=r"none\.csv.*CRADLE_CORPUS"):
        BookCorpus.chosen(tmp_path)


def test_each_line_is_one_tap_away_on_a_phone() -> None:
    ways = {line.name: line.ways for line in load_help_lines().lines}
    assert all(ways.values())
    for line in load_help_lines().lines:
        for number, kind in ((line.call, "tel:"), (line.text, "sms:")):
            found = [way for way in ways[line.name] if way.address.startswith(kind)]
            assert len(found) == (number is not None)
            if number is not None:
                # RFC 3966: a number with a country's code begins with a plus.
                assert re.fullmatch(
                    rf"{kind}(\+1\d{{10}}|\d{{3,6}})(\?&body=\w+)?", found[0].address
                )
                assert number in found[0].words


def test_a_line_that_cannot_be_reached_is_refused(tmp_path: Path) -> None:
    text = HELP_LINES.read_text(encoding="utf-8").replace('    text: "741741"\n', "")
    (tmp_path / "help_lines.yml").write_text(text, encoding="utf-8")
    with pytest.raises(BookError, match="neither a number to call"):
        load_help_lines(tmp_path / "help_lines.yml")
