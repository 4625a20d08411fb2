"""Results that a corpus does not allow are replaced by a notice."""

from __future__ import annotations

import pandas as pd
import pytest
import seaborn as sns

from cradle_lib.corpus.dialogue import Corpus, Dialogue, Turn
from cradle_lib.display import notice
from cradle_lib.display.choice import choose
from cradle_lib.display.notice import Notice, finding
from cradle_lib.display.table import Table, show
from cradle_lib.display.theme import Picture, show_figure

FRAME = pd.DataFrame({"x": [1, 2], "y": [3, 4]})
WORDS = {"alt": "Two points.", "caption": "Points."}


@pytest.fixture
def unlabelled(monkeypatch: pytest.MonkeyPatch) -> Corpus:
    turn = Turn(row=0, turn_id=0, speaker="User", text="Hello.", mask=0)
    corpus = Corpus(name="mine", dialogues=(Dialogue(0, (turn,)),))
    monkeypatch.setattr(notice.PAGE, "corpus", corpus)
    return corpus


def draw(data: pd.DataFrame) -> object:
    return sns.scatterplot(data, x="x", y="y")


def never(data: pd.DataFrame) -> object:
    raise AssertionError("nothing may be drawn")


def test_an_unmet_need_replaces_the_result_by_a_notice(unlabelled: Corpus) -> None:
    for shown in (
        show(FRAME, "A table.", needs="labels"),
        show_figure(never, FRAME, **WORDS, needs="labels"),
        finding("all is well.", needs="labels"),
    ):
        assert isinstance(shown, Notice)
        assert shown.message.startswith("No user turn of mine has a gold label.")


def test_a_met_need_shows_the_result(unlabelled: Corpus) -> None:
    assert isinstance(show(FRAME, "A table.", needs="user turns"), Table)
    assert isinstance(show_figure(draw, FRAME, **WORDS, needs="user turns"), Picture)
    assert finding("all is well.", needs="unlabelled turns").message == "All is well."


def test_empty_data_give_a_notice() -> None:
    shown = show_figure(never, FRAME[:0], **WORDS)
    assert isinstance(shown, Notice)
    assert shown.message.endswith("Not shown: Points.")
    assert "no result" in finding("").message


def test_a_choice_may_be_empty_and_is_printed_with_names() -> None:
    assert isinstance(choose("System", {}), Notice)
    assert repr(choose("System", {"a": Notice("x"), "b": Notice("y")})) == "a\nx\n\nb\ny"
