"""The builder: the same bytes every time, and clear errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cradle_extras.construction.plan import Event, Step
from cradle_extras.construction.writers.phrase_bank import sentences
from cradle_extras.construction.writers.voices import finish
from cradle_lib.errors import CorpusError
from tools.surrogate.__main__ import build_surrogate
from tools.surrogate.quotas import Case, apportion, stretch


@pytest.mark.shipped
def test_a_rebuild_in_another_process_gives_the_shipped_bytes(
    tmp_path: Path, surrogate_folder: Path
) -> None:
    # The hash seed changes the order of sets and, were they used, of dictionaries' keys.
    code = "from pathlib import Path; from tools.surrogate.__main__ import build_surrogate; "
    subprocess.run(
        [sys.executable, "-c", f"{code}build_surrogate(Path({str(tmp_path)!r}))"],
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        check=True,
    )
    names = ["SHA256SUMS", "dev.parquet", "meta.parquet", "test.parquet", "train.parquet"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    for name in names:
        assert (tmp_path / name).read_bytes() == (surrogate_folder / name).read_bytes(), name


def test_a_bank_that_is_too_small_is_one_clear_error(tmp_path: Path) -> None:
    bank = tmp_path / "bank"
    bank.mkdir()
    (bank / "few.txt").write_text("[topic.exam.user]\nI'm tired.\n[open.S1]\nHello there.\n")
    with pytest.raises(CorpusError, match=r"too small for 2606 test.*Add phrases"):
        build_surrogate(tmp_path / "out", bank)
    assert not (tmp_path / "out").exists()


def test_shares_go_to_the_largest_remainders() -> None:
    # 10 x (1, 2, 4) / 7 = 1.43, 2.86, 5.71: floors 1 + 2 + 5 = 8, remainders .86 and .71
    assert apportion([1, 2, 4], 10) == [1, 3, 6]


def test_lengths_are_stretched_to_the_sum_or_refused() -> None:
    assert sum(stretch([11, 13, 15], 45, step=2, low=11, high=19)) == 45
    with pytest.raises(CorpusError, match="can't have 44 rows"):
        stretch([11, 13, 15], 44, step=2, low=11, high=19)
    with pytest.raises(CorpusError, match="can't have 99 rows"):
        stretch([11, 13, 15], 99, step=2, low=11, high=19)


def test_a_past_event_is_never_told_in_an_acute_scenario() -> None:
    mixed = Case((Step("confirm", (Event("SH", "past"), Event("SI_active", "ongoing"))),))
    assert mixed.scenarios() == {"S1", "S2", "S3", "S6", "S7"}
    assert {"S4", "S5"} <= Case((Step("confirm", (Event("SI_active", "ongoing"),)),)).scenarios()


@pytest.mark.parametrize(
    ("rough", "fine"),
    [
        ("i'm  tired , really. it is late", "I'm tired, really. It is late."),
        ("a exam,. and an car!.", "An exam. And a car!"),
        ("a university and an hour, a one-off", "A university and an hour, a one-off."),
        ("so... i don't know", "So... I don't know."),
        ("what now?", "What now?"),
    ],
)
def test_finish_sets_blanks_articles_and_capitals_right(rough: str, fine: str) -> None:
    assert finish(rough) == fine


def test_sentences_are_split_and_normalised() -> None:
    text = 'Well... I\'m fine! "Really?"\n- one  item'
    assert sentences(text) == ["well", "i'm fine", "really", "one item"]
