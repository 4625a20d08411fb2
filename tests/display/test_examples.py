"""Excerpts of dialogues: escaping, privacy, and marks of labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Predictions
from cradle_lib.display.examples import HELP_PAGE, SURROGATE, Examples
from cradle_lib.labels import LABELS, labels_of, mask_of
from cradle_lib.scoring.analyses.error_cases import error_cases, marks, turn_marks

from .markup import Markup

HOSTILE = "<script>alert('x')</script>"


def excerpt(
    corpus: Corpus, runs: Sequence[Predictions], *excerpts: tuple[str, int, int, int]
) -> Examples:
    """Makes excerpts by title, position of the dialogue, first and last row."""
    rows = [(t, corpus.dialogues[n].id, first, last, None, ()) for t, n, first, last in excerpts]
    names = ["title", "dialogue", "first", "last", "turn", "systems"]
    return Examples(corpus, pd.DataFrame(rows, columns=names), turn_marks(runs))


@pytest.fixture
def examples(corpus: Corpus, runs: list[Predictions]) -> Examples:
    return excerpt(corpus, runs, ("A <b>title", 3, 0, 8))


def test_a_turn_cannot_become_markup(examples: Examples) -> None:
    page = Markup(examples._repr_html_())
    allowed = "a div p strong details summary small ol li code span br"
    assert page.tags <= {*allowed.split()}
    # One link is to the help page, the other to the dialogue.
    assert page.all("a") == [{"href": HELP_PAGE}, {"href": "explore.html#d=d0003"}]
    assert page.text.count(HOSTILE) == 8
    assert all(not key.startswith("on") for _, found in page.elements for key in found)


def test_text_of_other_corpora_is_never_on_a_page(corpus: Corpus, runs: list[Predictions]) -> None:
    real = replace(corpus, name="hub-test", synthetic=False)
    page = Markup(excerpt(real, runs, *(("All", n, 0, 8) for n in range(40)))._repr_html_())
    assert "alert('x')" not in page.text
    assert "and more" not in page.text
    assert SURROGATE not in page.text
    assert "Text not shown" in page.text
    assert "Gold: " in page.text


def test_a_continued_utterance_is_shown_as_one_turn(examples: Examples) -> None:
    page = Markup(examples._repr_html_())
    assert "3.7" in page.text
    assert "3.8 and more" in page.text
    assert [found["value"] for found in page.all("li")] == [str(n) for n in range(1, 9)]


def test_a_labelled_turn_names_earlier_labels(corpus: Corpus, runs: list[Predictions]) -> None:
    count = 0
    for place, dialogue in enumerate(corpus):
        page = Markup(excerpt(corpus, runs, ("A", place, 0, 8))._repr_html_())
        had: set[str] = set()
        for turn in dialogue.turns:
            labels = {*labels_of(turn.mask)}
            for label in (had - labels) if labels else ():
                assert re.search(rf"gold before: [^)]*{label} on turn \d+", page.text)
                count += 1
            had |= labels
    assert count


def test_unparsed_answers_and_unasked_turns_are_distinguished(
    corpus: Corpus, runs: list[Predictions]
) -> None:
    # User turns 0 and 10 are unparsed: the first of dialogue 0 and the third of dialogue 2.
    page = Markup(excerpt(corpus, [runs[1]], ("t", 0, 0, 8), ("t", 2, 0, 8))._repr_html_())
    assert page.text.count("no labels, its answer was unparsed") == 2
    inside = Markup(excerpt(corpus, [runs[2]], ("t", 3, 0, 8))._repr_html_())
    outside = Markup(excerpt(corpus, [runs[2]], ("t", 4, 0, 8))._repr_html_())
    assert "not asked" not in inside.text
    assert outside.text.count("not asked") == 4


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 65535), st.integers(0, 65535))
def test_marks_include_every_label_of_a_turn(gold: int, predicted: int) -> None:
    found = marks(gold, predicted)
    tags = [label for label, mark, _ in found if mark != "false_negative"]
    assert mask_of(tags) == predicted
    assert len(tags) == predicted.bit_count()
    assert {label for label, mark, _ in found if mark == "correct"} == set(
        labels_of(gold & predicted)
    )
    # A gold label is correct, missed, or named by the prediction that replaces it.
    answered = [words.rsplit(" ", 1)[1] for _, mark, words in found if "in place of" in words]
    missed = [label for label, mark, _ in found if mark == "false_negative"]
    assert mask_of(answered + missed) == gold & ~predicted


def test_error_cases_end_with_their_turn_and_have_neutral_titles(
    corpus: Corpus, make_run: Callable[..., Predictions]
) -> None:
    # Each label is replaced by the next one, which gives errors of several kinds.
    shifted = np.array([int(m) << 1 & 65535 if m else 0 for m in corpus.gold], dtype=np.uint16)
    run = make_run("keyword", shifted)
    shown = error_cases([run])
    assert len(shown) > 1
    for excerpt in shown.itertuples():
        assert excerpt.last == (excerpt.turn + 1 if excerpt.turn == 7 else excerpt.turn)
        assert excerpt.first == max(0, excerpt.turn - 4)
        assert corpus.by_id[excerpt.dialogue].turns[excerpt.turn].asked
        assert not any(label in excerpt.title for label in LABELS)
