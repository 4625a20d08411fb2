"""A bundle's archive: a zip file from somebody else, which is checked before it is read."""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Final

from cradle_lib import paths
from cradle_lib.errors import JournalError
from cradle_lib.files import is_hidden, read_bounded, replacing

# A run of the largest model over the paper's test split takes a fiftieth of this.
_LARGEST: Final = 1 << 29
# Each line of a journal holds a digest of 64 random bits, which nothing can shrink.
_RATIO: Final = 100
_SMALL: Final = 1 << 20
_MOST_FILES: Final = 1_000
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# The earliest that a zip can state: an archive of the same files has the same bytes.
_TIME: Final = (1980, 1, 1, 0, 0, 0)


def write_archive(files: Mapping[str, bytes], path: Path) -> None:
    """Writes files, their contents by name, to an archive, completely or not at all."""
    with replacing(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)


def read_archive(path: Path) -> dict[str, bytes]:
    """Reads an archive into memory, contents by name; nothing is written anywhere.

    Hidden files, as macOS adds them to archives, are left out.

    Raises:
        JournalError: If it is no zip, is damaged, holds a name outside itself, a link or a name
            twice, or would unpack to more than a result can have.
    """
    try:
        content = BytesIO(read_bounded(path, _LARGEST))
        with zipfile.ZipFile(content) as archive:
            entries = archive.infolist()
            _require_bounded(entries, path)
            for entry in entries:
                _require_inside(entry, path)
            if len({entry.filename for entry in entries}) < len(entries):
                raise _refused(path, "holds two files of the same name")
            files = (e for e in entries if not e.is_dir() and not is_hidden(e.filename))
            return {entry.filename: archive.read(entry) for entry in files}
    except OSError as error:
        raise _refused(path, f"can't be read ({error.strerror or error})") from None
    except (zipfile.BadZipFile, RuntimeError, ValueError, EOFError, zlib.error) as error:
        # Encryption is a RuntimeError, and a damaged stream whatever its decoder raises.
        raise _refused(path, f"is no sound zip archive ({error})") from None


def _require_bounded(entries: list[zipfile.ZipInfo], path: Path) -> None:
    """Believes the stated sizes: reading stops at them."""
    if len(entries) > _MOST_FILES:
        raise _refused(path, f"holds {len(entries):,} files, a bundle has a few")
    size = sum(entry.file_size for entry in entries)
    packed = sum(entry.compress_size for entry in entries)
    if size > _LARGEST or (size > _SMALL and size > _RATIO * packed):
        raise _refused(path, f"unpacks from {packed:,} to {size:,} bytes, which no result does")
    for entry in entries:
        if entry.compress_type not in _METHODS:
            raise _refused(path, f"packs {entry.filename!r} in an unknown way")


def _require_inside(entry: zipfile.ZipInfo, path: Path) -> None:
    # The name as it was written: what a reader made of a null byte or a backslash is another one.
    name = entry.orig_filename
    parts = PurePosixPath(name).parts
    inside = name and "\\" not in name and ":" not in name and "\0" not in name
    if not inside or name.startswith("/") or ".." in parts:
        raise _refused(path, f"holds {name!r:.80}, a path outside itself")
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise _refused(path, f"holds {name!r:.80}, a link")


def _refused(path: Path, problem: str) -> JournalError:
    return JournalError(
        f"{paths.shown(path)}: {problem}. Get the bundle anew from whoever made it."
    )
