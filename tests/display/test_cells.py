"""What stands between backticks is code, and nothing else is markup."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from cradle_lib.display.cells import SCORES, with_code
from cradle_lib.scoring.scores import Scores


@given(st.text())
def test_a_sentence_keeps_its_code_and_no_other_markup(text: str) -> None:
    shown = with_code(f"`x|y` {text}")
    assert shown.startswith("<code>x|y</code> ")
    assert not set(re.findall(r"<[^>]*>", shown)) - {"<code>", "</code>"}


def test_every_score_has_its_name_in_words() -> None:
    assert Scores._fields == SCORES
