"""Files are put in their place whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cradle_lib.errors import CradleError
from cradle_lib.files import read_bounded, replacing


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


def test_nothing_is_written_through_a_link_that_waits_under_a_known_name(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / "table.csv.part").symlink_to(victim)
    (tmp_path / "table.csv").symlink_to(victim)
    with replacing(tmp_path / "table.csv") as part:
        part.write_text("new")
    assert victim.read_text() == "kept"
    assert (tmp_path / "table.csv").read_text() == "new"
    assert not (tmp_path / "table.csv").is_symlink()


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    assert read_bounded(path, 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        read_bounded(path, 4)


def test_what_may_have_no_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="a device or a pipe, not a file"):
            read_bounded(path, 10)
    with pytest.raises(IsADirectoryError):
        read_bounded(tmp_path, 10)
    with pytest.raises(FileNotFoundError):
        read_bounded(tmp_path / "none", 10)
