"""Files are put in their place whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from cradle_lib.errors import CradleError
from cradle_lib.files import replacing


def test_a_file_is_replaced_when_all_went_well(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "table.csv"
    for content in ("one", "two"):
        with replacing(target) as part:
            part.write_text(content)
        assert target.read_text() == content
    assert [path.name for path in target.parent.iterdir()] == ["table.csv"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_old_file_stays_when_writing_fails(error: type[BaseException], tmp_path: Path) -> None:
    target = tmp_path / "table.csv"
    target.write_text("old")

    def fail() -> None:
        with replacing(target) as part:
            part.write_text("ha")
            raise error

    with pytest.raises(error):
        fail()
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_a_place_that_cant_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(CradleError, match=r"file/a\.csv: can't be written \(.+\)"),
        replacing(tmp_path / "file" / "a.csv"),
    ):
        raise AssertionError("nothing is asked to be written there")
