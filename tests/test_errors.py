"""Error messages are bounded and printable, whatever text they quote."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cradle_lib.errors import LONGEST, CorpusError, CradleError, printable


def test_a_message_is_bounded_and_keeps_both_ends() -> None:
    message = str(CorpusError("x" * 20_000_000, path="a.csv", hint="Do this."))
    assert len(message) < LONGEST + 100
    assert message.startswith("a.csv: xxx")
    assert message.endswith("xxx. Do this.")
    assert "19,998,0" in message


def test_escape_sequences_and_direction_marks_are_escaped() -> None:
    error = CradleError("a\x1b]0;title\x07\x9b31m\u202eb\r\ud800 é →\n\tc")
    assert str(error) == r"a\x1b]0;title\x07\x9b31m\u202eb\r\ud800 é →" + "\n\tc"


@given(st.text(alphabet=st.characters(codec=None), max_size=50))
def test_any_text_becomes_printable_and_printing_is_idempotent(text: str) -> None:
    shown = printable(text)
    assert all(mark.isprintable() or mark in "\n\t" for mark in shown)
    assert printable(shown) == shown
    shown.encode()
