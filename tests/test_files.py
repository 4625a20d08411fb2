"""Atomic replacement of files, and hidden files."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from cradle_extras.bundle.archive import read_archive
from cradle_lib.corpus.conversion import convert
from cradle_lib.errors import CorpusError
from cradle_lib.files import is_hidden, replacing, visible_files


def test_a_file_is_replaced_when_writing_succeeds(tmp_path: Path) -> None:
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


def test_nothing_is_written_through_a_planted_symbolic_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / "table.csv.part").symlink_to(victim)
    (tmp_path / "table.csv").symlink_to(victim)
    with replacing(tmp_path / "table.csv") as part:
        part.write_text("new")
    assert victim.read_text() == "kept"
    assert (tmp_path / "table.csv").read_text() == "new"
    assert not (tmp_path / "table.csv").is_symlink()


LEFT_BEHIND = (
    *("._a.txt", ".#a.txt", "~$a.txt", "a.txt~", "THUMBS.DB"),
    *("__MACOSX/a.txt", ".ipynb_checkpoints/a.txt"),
)


def test_files_that_programs_leave_are_hidden_from_readers_of_folders(tmp_path: Path) -> None:
    # The folder itself may be hidden.
    folder = tmp_path / ".mine"
    for name in LEFT_BEHIND:
        assert is_hidden(name)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"\x00\x05\x16\x07 User: not a dialogue")
    with pytest.raises(CorpusError, match="the folder has no text file"):
        convert(folder)
    (folder / "a.b~c.txt").write_text("User: a\n", encoding="utf-8")
    # It is read, but the names of files are ids, which have no tilde.
    with pytest.raises(CorpusError, match=r"a\.b~c\.txt: the file's name is .*Rename the file"):
        convert(folder)
    for pattern in ("*", "**/*", "*/*.txt"):
        found = [path.name for path in visible_files(folder, pattern) if path.is_file()]
        assert found == (["a.b~c.txt"] if pattern != "*/*.txt" else [])


def test_hidden_files_of_a_macos_archive_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("record.json", ".DS_Store", "__MACOSX/._record.json", "scores/._a.csv"):
            archive.writestr(name, "{}")
    assert read_archive(path) == {"record.json": b"{}"}
