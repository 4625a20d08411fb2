"""Large embedded files of pages are moved into separate files."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from cradle_lib.book.site.figures import LARGEST, move_files

from .mini_book import write

LARGE = b"a,b\r\n" * LARGEST


def base64_of(content: bytes) -> str:
    return base64.b64encode(content).decode()


def page(content: bytes, name: str = "a &amp; b.csv") -> str:
    """Makes a page with a file as a download and as a figure."""
    data = base64_of(content)
    return (
        f'<a download="{name}" aria-label="CSV: all" href="data:text/csv;base64,{data}">CSV</a>'
        f'<img alt="x" width="1" src="data:image/svg+xml;base64,{data}">'
    )


def addresses(path: Path) -> list[str]:
    return re.findall(r'(?:href|src)="([^"]*)"', path.read_text("utf-8"))


def test_large_embedded_files_become_links_and_small_ones_stay(tmp_path: Path) -> None:
    for name in ("top.html", "sections/deep.html"):
        write(tmp_path / name, page(LARGE))
    write(tmp_path / "small.html", page(b"1"))
    for _ in range(2):
        move_files(tmp_path)
        for name in ("top.html", "sections/deep.html"):
            found = addresses(tmp_path / name)
            for address, file in zip(found, ("a &amp; b.csv", "figure.svg"), strict=True):
                assert address.endswith(f"/{file}")
                read = (tmp_path / name).parent / address.replace("&amp;", "&")
                assert read.read_bytes() == LARGE
            assert 'loading="lazy"' in (tmp_path / name).read_text()
        assert (tmp_path / "small.html").read_text() == page(b"1")


def test_a_file_is_removed_with_the_last_page_that_uses_it(tmp_path: Path) -> None:
    other = LARGE + b"other"
    write(tmp_path / "one.html", page(LARGE))
    write(tmp_path / "two.html", page(LARGE) + page(other))
    move_files(tmp_path)
    write(tmp_path / "two.html", "")
    move_files(tmp_path)
    left = {path.read_bytes() for path in (tmp_path / "_files").rglob("*.*")}
    assert left == {LARGE}


def test_a_file_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "site/page.html", page(LARGE, "../../../outside.csv"))
    move_files(tmp_path / "site")
    [written] = tmp_path.rglob("*.csv")
    assert written.is_relative_to(tmp_path / "site/_files")
