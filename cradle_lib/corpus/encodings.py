"""Decodes the bytes of a text file, and refuses to guess where a guess could change its words."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from typing import Final

from cradle_lib.corpus.tables import byte_place
from cradle_lib.errors import CorpusError

# Files that are not text: zip archives (also spreadsheets and documents), older spreadsheets, PDF,
# gzip, parquet, Arrow.
_BINARY: Final = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"%PDF", b"\x1f\x8b", b"PAR1", b"ARROW1")
_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_MULTIBYTE: Final = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
# Never in Windows-1252: quotes, dashes, accents and emoji of UTF-8, complete or not, which it reads
# as two to four odd characters; and a sign within a word, which is a letter in other encodings.
_OTHER: Final = re.compile(
    rb"[\xc2\xc3\xe2][\x80-\xbf]|\x80[\x98\x99\x9c\x9d\xa6]|\xf0\x9f[\x80-\xbf]"
    rb"|[a-z][\xa1-\xac\xae-\xb3\xb5\xb6\xb8-\xbf][a-z]"
)
_NAME_IT: Final = (
    "Correct it, or save the file as UTF-8. If it is in another encoding, name that, such as "
    "--encoding windows-1252, windows-1251 or utf-16-le."
)


def decode(content: bytes, encoding: str | None = None) -> tuple[str, str]:
    """Decodes a file.

    Args:
        content: The bytes.
        encoding: The encoding, as Python names it. By default it is the one of the byte order mark,
            or UTF-8, or else Windows-1252, if nothing in the file looks like damaged UTF-8 or
            another encoding.

    Returns:
        The text without the mark, and the encoding.

    Raises:
        CorpusError: If the file is empty, not text, or not in that encoding.
    """
    if content.startswith(_BINARY):
        raise CorpusError(
            "not a text file",
            hint="Save a spreadsheet as CSV (in Excel: Save As, CSV UTF-8; in LibreOffice: Text "
            "CSV, UTF-8), and a document as plain text. Unpack an archive first.",
        )
    marked = next((name for mark, name in _MARKS.items() if content.startswith(mark)), None)
    used = encoding or marked or "utf-8"
    try:
        text = content.decode(used)
    except LookupError:
        raise CorpusError(f"there is no encoding {used!r:.40}", hint=_NAME_IT) from None
    except ValueError as error:  # Also of codecs that are not for files.
        if encoding or marked or not _is_windows(content):
            start = getattr(error, "start", 0)
            problem = f"{byte_place(content, start)} is not {used.upper()}"
            raise CorpusError(problem, hint=_NAME_IT) from None
        used = "windows-1252"
        text = content.decode(used)
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise CorpusError("the file is empty", hint="Export it again.")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise CorpusError(f"line {line:,} has a NUL character, so it is no text", hint=_NAME_IT)
    return text, used


def _is_windows(content: bytes) -> bool:
    """Whether bytes that are not UTF-8 are Windows-1252 rather than damaged or something else."""
    others = _MULTIBYTE.sub(b"", content).translate(None, bytes(range(128)))
    if _OTHER.search(content) or 4 * len(_MULTIBYTE.findall(content)) > len(others):
        return False
    with suppress(UnicodeDecodeError):
        # Text in another script has more letters beyond ASCII if read as Windows-1252.
        letters = [char.isascii() for char in content.decode("windows-1252") if char.isalpha()]
        return sum(letters) >= 0.7 * len(letters)
    return False
