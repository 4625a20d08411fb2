"""Large files that pages hold: where they go, and what a page is left with."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from cradle_lib.book.site.figures import LARGEST, move_files

from .mini_book import write

LARGE = b"a,b\r\n" * LARGEST


def held(content: bytes) -> str:
    return base64.b64encode(content).decode()


def page(content: bytes, name: str = "a &amp; b.csv") -> str:
    """A page that offers a file and shows it as a figure."""
    return (
        f'<a download="{name}" aria-label="CSV: all" href="data:text/csv;base64,{held(content)}">'
        f'CSV</a><img alt="x" width="1" src="data:image/svg+xml;base64,'
        f'{held(content)}">'
    )


def addresses(path: Path) -> list[str]:
    return re.findall(r'(?:href|src)="([^"]*)"', path.read_text("utf-8"))


def test_large_files_are_links_from_every_depth_and_small_ones_stay(tmp_path: Path) -> None:
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


def test_a_file_goes_with_the_last_page_that_has_it(tmp_path: Path) -> None:
    other = LARGE + b"other"
    write(tmp_path / "one.html", page(LARGE))
    write(tmp_path / "two.html", page(LARGE) + page(other))
    move_files(tmp_path)
    write(tmp_path / "two.html", "")
    move_files(tmp_path)
    left = {path.read_bytes() for path in (tmp_path / "_files").rglob("*.*")}
    assert left == {LARGE}


def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "site/page.html", page(LARGE, "../../../outside.csv"))
    move_files(tmp_path / "site")
    [written] = tmp_path.rglob("*.csv")
    assert written.is_relative_to(tmp_path / "site/_files")
