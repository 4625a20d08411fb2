"""Results without data are replaced by a notice."""

from __future__ import annotations

import pandas as pd

from cradle_lib.display.choice import choose
from cradle_lib.display.notice import Notice, finding
from cradle_lib.display.theme import show_figure


def never(data: pd.DataFrame) -> object:
    raise AssertionError("nothing may be drawn")


def test_empty_data_give_a_notice() -> None:
    frame = pd.DataFrame({"x": [], "y": []})
    shown = show_figure(never, frame, alt="Two points.", caption="Points.")
    assert isinstance(shown, Notice)
    assert shown.message.endswith("Not shown: Points.")
    assert "no result" in finding("").message


def test_a_choice_may_be_empty_and_is_printed_with_names() -> None:
    assert isinstance(choose("System", {}), Notice)
    assert repr(choose("System", {"a": Notice("x"), "b": Notice("y")})) == "a\nx\n\nb\ny"
