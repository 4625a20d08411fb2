"""The phrase bank: alternatives, slots, reproducible bytes, and the cleaning of text."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cradle_extras.construction.writers.bank import Bank, Phrase, SurfaceForms
from cradle_extras.construction.writers.voices import finish
from cradle_lib import paths
from cradle_lib.errors import CorpusError
from tools.surrogate.__main__ import build_surrogate


@pytest.mark.parametrize(
    ("picks", "form"), [([0, 1], "a , d"), ([1, 0, 0], "b , "), ([1, 1, 1, 1], "two , d")]
)
def test_alternatives_nest_and_contain_slots(picks: list[int], form: str) -> None:
    bank = Bank({"slot.x": (Phrase("one", None, ""), Phrase("two", None, ""))})
    forms = SurfaceForms(bank, lambda _: picks.pop(0))
    assert forms.expand("(a|(b|{x})) , (|d)", listener=False) == form
    assert not picks


def test_a_repeated_slot_keeps_its_value_and_the_listener_has_another_form(tmp_path: Path) -> None:
    values = "".join(f"my {i} => your {i}\n" for i in range(50))
    (tmp_path / "some.txt").write_text(f"[slot.who]\n{values}[say]\n{{@who}}, {{@who}}\n")
    bank = Bank.load(tmp_path)
    turns = iter([7, 3, 9])
    forms = SurfaceForms(bank, lambda size: next(turns))
    (phrase,) = bank.sections["say"]
    assert forms.expand(phrase.text, listener=False) == "my 7, my 7"
    assert forms.expand(phrase.text, listener=True) == "your 7, your 7"


@pytest.mark.shipped
def test_a_rebuild_in_another_process_gives_the_shipped_bytes(tmp_path: Path) -> None:
    # Another hash seed changes the iteration order of sets.
    code = "from pathlib import Path; from tools.surrogate.__main__ import build_surrogate; "
    subprocess.run(
        [sys.executable, "-c", f"{code}build_surrogate(Path({str(tmp_path)!r}))"],
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        check=True,
    )
    names = ["SHA256SUMS", "dev.parquet", "meta.parquet", "test.parquet", "train.parquet"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    for name in names:
        assert (tmp_path / name).read_bytes() == (paths.SURROGATE / name).read_bytes(), name


def test_a_bank_that_is_too_small_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "few.txt").write_text("[topic.exam.user]\nI'm tired.\n[open.S1]\nHello there.\n")
    with pytest.raises(CorpusError, match=r"too small for 2606 test.*Add phrases"):
        build_surrogate(tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("rough", "fine"),
    [
        ("i'm  tired , really. it is late", "I'm tired, really. It is late."),
        ("a exam,. and an car!.", "An exam. And a car!"),
        ("a university and an hour, a one-off", "A university and an hour, a one-off."),
        ("so... i don't know", "So... I don't know."),
    ],
)
def test_finish_corrects_spaces_articles_and_capitals(rough: str, fine: str) -> None:
    assert finish(rough) == fine
