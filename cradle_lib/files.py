"""Atomic writing of files, and listing of folders."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Final

from cradle_lib.errors import CradleError

# Created by Windows in folders and by macOS in zip archives; other such names begin with a dot.
_SYSTEM_FILES: Final = frozenset({"__macosx", "desktop.ini", "ehthumbs.db", "thumbs.db"})


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Writes a file atomically: gives a temporary path, which is renamed at the end.

    The temporary file is in the same folder and is deleted after an error. Missing folders are
    created.

    Raises:
        CradleError: If the file can't be written there, or a text contains a lone surrogate (half a
            character), which UTF-8 can't encode.
    """
    # Random, because a predictable name could be an existing symbolic link to another file.
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        part.replace(path)
    except OSError as error:
        problem = f"can't be written ({error.strerror or error})"
        hint = "Choose another path, or free some space there."
        raise CradleError(problem, path=path, hint=hint) from None
    except UnicodeEncodeError as error:
        problem = f"can't be written: {error.object[error.start]!r} is half a character"
        raise CradleError(problem, path=path, hint="Correct the text that contains it.") from None
    finally:
        with suppress(OSError):
            part.unlink()


def write_text(path: Path, text: str) -> None:
    """Writes a text file atomically in UTF-8, with the errors of :func:`replacing`."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def visible_files(folder: Path, pattern: str = "*") -> list[Path]:
    """Lists the files of a folder that match a pattern, sorted, without hidden files.

    macOS, editors and file managers create files such as ``._a.txt``, ``.#b.txt`` and
    ``.ipynb_checkpoints/c.ipynb``. All code that reads a folder uses this function. The list is
    empty for a missing folder.
    """
    return sorted(
        path for path in folder.glob(pattern) if not is_hidden(path.relative_to(folder).as_posix())
    )


def is_hidden(path: str) -> bool:
    """Whether a relative POSIX path is hidden, a backup such as ``a~``, or a system file."""
    parts = PurePosixPath(path).parts
    return any(
        part.startswith((".", "~$")) or part.endswith("~") or part.casefold() in _SYSTEM_FILES
        for part in parts
    )
