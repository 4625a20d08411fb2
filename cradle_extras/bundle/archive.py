"""Writes and reads the zip archive of a bundle, which may come from an untrusted source."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cradle_lib import paths
from cradle_lib.errors import JournalError
from cradle_lib.files import is_hidden, replacing

# Largest unpacked size in bytes: fifty runs of the largest model over the paper's test split.
_LARGEST: Final = 1 << 29
# A fixed date, the earliest of the zip format, so that the same files give the same bytes.
_TIME: Final = (1980, 1, 1, 0, 0, 0)


def write_archive(files: Mapping[str, bytes], path: Path) -> None:
    """Writes files, given as content by name, to an archive atomically."""
    with replacing(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)


def read_archive(path: Path) -> dict[str, bytes]:
    """Reads an archive into memory, as content by name.

    Hidden files, such as those that macOS adds to archives, are left out.

    Raises:
        JournalError: If it is not a zip file, is damaged, or unpacks to more than 512 MiB.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            files = [e for e in archive.infolist() if not e.is_dir() and not is_hidden(e.filename)]
            # The module never reads more than the stated sizes.
            if (size := sum(entry.file_size for entry in files)) > _LARGEST:
                raise ValueError(f"it unpacks to {size:,} bytes")
            return {entry.filename: archive.read(entry) for entry in files}
    except OSError as error:
        problem = f"can't be read ({error.strerror or error})"
    except (zipfile.BadZipFile, RuntimeError, ValueError, EOFError, zlib.error) as error:
        # The module raises RuntimeError if a file is encrypted.
        problem = f"is not a valid bundle ({error})"
    raise JournalError(f"{paths.shown(path)}: {problem}. Ask the bundle's author for a new copy.")
