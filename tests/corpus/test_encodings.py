"""Encodings of text files; the bytes are made by Python's own codecs."""

from __future__ import annotations

import pytest

from cradle_lib.corpus.encodings import decode
from cradle_lib.errors import CorpusError

ENGLISH = "I don\u2019t want to stay. \u201cSo?\u201d \u2013 Caf\u00e9, na\u00efve\u2026\n" * 3
FRENCH = (
    "Je suis d\u00e9sol\u00e9\u201d, dit-elle \u00e0 l\u2019accueil \u2013 \u00ab oui \u00bb, "
    "puis elle est partie\u2026\n"
)
GERMAN = "Gro\u00dfe T\u00fcr, 50 \u20ac \u2013 \u201enein\u201c, ich kann\u00b4s nicht\u2026\n"
POLISH = "Boli mnie g\u0142owa, mo\u017ce b\u0119dzie lepiej\n"
RUSSIAN = "\u041f\u0440\u0438\u0432\u0435\u0442, \u043a\u0430\u043a \u0434\u0435\u043b\u0430\n"


@pytest.mark.parametrize("text", [ENGLISH, FRENCH, GERMAN])
@pytest.mark.parametrize("name", ["utf-8", "utf-8-sig", "windows-1252", "utf-16", "utf-32"])
def test_usual_encodings_are_recognised(text: str, name: str) -> None:
    assert decode(text.encode(name)) == (text, name.removesuffix("-sig"))


@pytest.mark.parametrize("text", [POLISH, RUSSIAN])
@pytest.mark.parametrize("name", ["windows-1250", "windows-1251", "utf-16-le", "utf-16-be"])
def test_other_encodings_are_used_if_they_are_named_and_never_guessed(text: str, name: str) -> None:
    try:
        content = text.encode(name)
    except UnicodeEncodeError:
        return
    assert decode(content, name) == (text, name)
    with pytest.raises(CorpusError, match="--encoding"):
        decode(content)


UTF8, WINDOWS = ENGLISH.encode(), GERMAN.encode("windows-1252")
# Bytes that are lost, changed, added or cut off, and other encodings: the file, and the first byte
# that is not UTF-8.
DAMAGED: dict[str, tuple[bytes, bytes]] = {
    "lost": (UTF8.replace(b"\xe2\x80\x99", b"\x80\x99", 1), b"\x80"),
    "changed": (UTF8.replace(b"\xc3\xa9", b"\xc3s", 1), b"\xc3s"),
    "added": (UTF8.replace(b"stay", b"st\xffay"), b"\xff"),
    "cut": (UTF8.rstrip(b"\n")[:-1], b"\xe2\x80"),
    "mixed": (UTF8 + ENGLISH.encode("windows-1252"), b"\x92"),
    "mixed first": (WINDOWS * 9 + UTF8, b"\xdf"),
    "the only sign": (b"I\ndon\xe2\x80t know\n", b"\xe2"),
    "marked": (b"\xef\xbb\xbf" + WINDOWS, b"\xdf"),
    "Russian": (RUSSIAN.encode() + b"\xff", b"\xff"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_utf_8_is_refused_with_its_place(name: str) -> None:
    content, wrong = DAMAGED[name]
    before = content[: content.rindex(wrong) if name == "cut" else content.index(wrong)]
    lines = before.split(b"\n")
    place = rf"line {len(lines)}, byte {len(lines[-1]) + 1} \({wrong[:1].hex()}\) is not UTF-8"
    with pytest.raises(CorpusError, match=f"{place}.*--encoding"):
        decode(content)
    # The user decides; each of these bytes is a character in this encoding.
    assert decode(content, "latin-1")[1] == "latin-1"


@pytest.mark.parametrize(
    ("content", "encoding", "message"),
    [
        (b"PK\x03\x04rest", None, "Save a spreadsheet as CSV"),
        (b"\xef\xbb\xbf \n", None, "the file is empty"),
        ("a\nb".encode("utf-16-le"), None, "line 1 has a NUL character"),
        (ENGLISH.encode("utf-16")[:-1], None, "is not UTF-16"),
        (b"a", "klingon", "there is no encoding 'klingon'"),
        (b"a\xff", "idna", "is not IDNA"),
    ],
)
def test_other_files_and_encodings_are_refused(
    content: bytes, encoding: str | None, message: str
) -> None:
    with pytest.raises(CorpusError, match=message):
        decode(content, encoding)
