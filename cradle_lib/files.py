"""How a file is put in its place, whole or not at all; and how one from outside is read."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Final

from cradle_lib.errors import CradleError

# Left in folders by Windows and in zip archives by macOS; other such names begin with a dot.
_LEFT_BEHIND: Final = frozenset({"__macosx", "desktop.ini", "ehthumbs.db", "thumbs.db"})


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a temporary name to write to, which takes the file's place when all went well.

    It is in the same folder; missing folders are made. Nothing stays under it if anything goes
    wrong.

    Raises:
        CradleError: If the system doesn't let the file be written there, or a text holds half of a
            broken character, which no encoding has.
    """
    # A name that nobody can know: a link that waits under a known one would be written through.
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        part.replace(path)
    except OSError as error:
        problem = f"can't be written ({error.strerror or error})"
        hint = "Name another place, or make room for it there."
        raise CradleError(problem, path=path, hint=hint) from None
    except UnicodeEncodeError as error:
        problem = f"can't be written: {error.object[error.start]!r} is half a character"
        raise CradleError(problem, path=path, hint="Correct the text that it stands in.") from None
    finally:
        with suppress(OSError):
            part.unlink()


def write_text(path: Path, text: str) -> None:
    """Writes a text in UTF-8 as :func:`replacing` does: whole, or not at all."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def visible_files(folder: Path, pattern: str = "*") -> list[Path]:
    """Lists what matches a pattern in a folder, sorted, without hidden files.

    macOS, editors and file managers leave files beside those of the user, often under the same
    ending: ``._a.txt``, ``.#b.txt``, ``.ipynb_checkpoints/c.ipynb``. Every reader of a folder lists
    it with this function. A folder that is not there is empty.
    """
    return sorted(
        path for path in folder.glob(pattern) if not is_hidden(path.relative_to(folder).as_posix())
    )


def is_hidden(path: str) -> bool:
    """Whether a relative path with slashes is one that a program left there, not the user."""
    parts = PurePosixPath(path).parts
    return any(
        part.startswith((".", "~$")) or part.endswith("~") or part.casefold() in _LEFT_BEHIND
        for part in parts
    )


def read_bounded(path: Path, most: int) -> bytes:
    """Reads a file of at most so many bytes that somebody else may have made.

    Raises:
        OSError: If it can't be read, is no ordinary file (a device or a pipe, which may have no
            end), or is larger; :attr:`OSError.strerror` says which.
    """
    require_ordinary(path)
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"more than {most:,} bytes", str(path))
    return content


def require_ordinary(path: Path) -> None:
    """Refuses, with an :class:`OSError`, a folder, a device, a pipe, and a file that is missing."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "a device or a pipe, not a file", str(path))
