"""The phrase grammar against a brute-force twin, and the bank's errors."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_extras.construction.writers import grammar
from cradle_extras.construction.writers.bank import Bank, SurfaceForms
from cradle_lib import paths
from cradle_lib.errors import CorpusError

SLOTS = {"x": ["one", "two"], "y": ["", "why not"]}

WORD = st.text(alphabet="abc ,.", max_size=4)
SLOT = st.sampled_from(["{x}", "{@x}", "{y}"])
PHRASE = st.recursive(
    st.lists(WORD | SLOT, min_size=1, max_size=3).map("".join),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(lambda options: "(" + "|".join(options) + ")")
        | st.lists(inner, min_size=1, max_size=2).map("".join)
    ),
    max_leaves=5,
)


def brute(text: str) -> set[str]:
    """All forms of a phrase by rewriting its text, innermost bracket first."""
    slot = re.search(r"\{@?(\w+)\}", text)
    if slot:
        return set().union(
            *(brute(text[: slot.start()] + v + text[slot.end() :]) for v in SLOTS[slot[1]])
        )
    bracket = re.search(r"\(([^()]*)\)", text)
    if bracket:
        return set().union(
            *(
                brute(text[: bracket.start()] + option + text[bracket.end() :])
                for option in bracket[1].split("|")
            )
        )
    return {text}


def every_form(text: str) -> set[str]:
    """All forms by the library: every sequence of picks, as an odometer."""
    parts = grammar.parse(text, "here:1")
    forms, picks = set(), [0]
    while picks:
        sizes: list[int] = []

        def pick(size: int, sizes: list[int] = sizes, picks: list[int] = picks) -> int:
            sizes.append(size)
            if len(sizes) > len(picks):
                picks.append(0)
            return picks[len(sizes) - 1]

        forms.add(grammar.expand(parts, pick, lambda slot: SLOTS[slot.name][pick(2)]))
        picks = picks[: len(sizes)]
        while picks and picks[-1] == sizes[len(picks) - 1] - 1:
            picks.pop()
        if picks:
            picks[-1] += 1
    return forms


@settings(deadline=None, max_examples=100)
@given(PHRASE.filter(lambda text: text.count("{") + text.count("|") <= 8))
def test_expansion_gives_exactly_the_forms_that_rewriting_gives(text: str) -> None:
    assert every_form(text) == brute(text)


def test_a_worked_phrase_has_its_six_forms() -> None:
    # 2 alternatives x (1 + 2 nested) = 6
    assert every_form("(a|b) (c|d(e|))") == {
        f"{first} {second}" for first, second in itertools.product("ab", ("c", "de", "d"))
    }


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("one (two|three", "never closed"),
        ("one two) three", "outside of any"),
        ("one | two", "outside of any"),
        ("a {slot", "must look like"),
        ("a {} b", "must look like"),
        ("a {two words} b", "must look like"),
        ("a {x(y)} b", "must look like"),
        ("a } b", "without a {"),
        ("a {nowhere} b", r"unknown slot \{nowhere\}"),
        ("one => two", "=> is allowed in slots"),
        ("[not a section", "a section must look like"),
    ],
)
def test_bad_syntax_is_one_clear_error_with_file_and_line(
    tmp_path: Path, line: str, problem: str
) -> None:
    (tmp_path / "some.txt").write_text(f"# comment\n[open.S1]\nfine\n\n{line}\n")
    with pytest.raises(CorpusError, match=problem) as caught:
        Bank.load(tmp_path)
    assert "some.txt:5" in str(caught.value)


def test_a_phrase_before_any_section_is_refused(tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text("hello\n")
    with pytest.raises(CorpusError, match=r"some\.txt:1: a phrase before the first section"):
        Bank.load(tmp_path)


def test_a_slot_that_needs_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text("[slot.a]\nx {b}\n[slot.b]\ny (z|{a})\n")
    with pytest.raises(CorpusError, match=r"some\.txt:\d: \[slot\.[ab]\] needs itself"):
        Bank.load(tmp_path)


def test_a_folder_without_phrases_and_a_file_that_is_not_utf8_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no phrase file"):
        Bank.load(tmp_path)
    (tmp_path / "some.txt").write_bytes(b"[open.S1]\ncaf\xe9\n")
    with pytest.raises(CorpusError, match="not UTF-8"):
        Bank.load(tmp_path)


def test_a_kept_slot_stays_and_the_listener_turns_it_round(tmp_path: Path) -> None:
    values = "".join(f"my {i} => your {i}\n" for i in range(50))
    (tmp_path / "some.txt").write_text(f"[slot.who]\n{values}[say]\n{{@who}}, {{@who}}\n")
    bank = Bank.load(tmp_path)
    turns = iter([7, 3, 9])
    box = SurfaceForms(bank, lambda size: next(turns))
    (phrase,) = bank.phrases("say")
    assert box.say(phrase, listener=False) == "my 7, my 7"
    assert box.say(phrase, listener=True) == "your 7, your 7"


def test_the_shipped_bank_loads_and_says_what_it_is() -> None:
    Bank.load(paths.PHRASES)
    for path in sorted(paths.PHRASES.glob("*.txt")):
        assert "surrogate, written by this project" in path.read_text(encoding="utf-8")[:400]
