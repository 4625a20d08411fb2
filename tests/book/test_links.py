"""Links inside the built book, followed without a browser."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

from .site import Site

EXPLORERS = {"sections/explore.html"}


class Reader(HTMLParser):
    """Collects what a page links to and what can be linked to on it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = {"", "#"}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.targets |= {values[name] for name in ("href", "src") if name in values}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}


def test_every_link_inside_the_book_leads_somewhere(site: Site) -> None:
    names = [*site.pages, *site.redirects]
    pages = {name: Reader((site.folder / name).read_text("utf-8")) for name in names}
    broken, unencrypted = [], []
    for name, reader in pages.items():
        for target in reader.targets:
            # Keeps the parts of an address apart without asking a server.
            parts = urlsplit(urljoin(f"http://book/{name}", target))
            unencrypted += [target] if target.startswith("http:") else []
            if parts.scheme not in ("http", "https") or parts.netloc != "book":
                continue
            path = unquote(parts.path).lstrip("/") or "index.html"
            anchors = pages[path].anchors if path in pages else {"", parts.fragment}
            # What these address is no anchor: it is followed where numbers are.
            anchors |= {unquote(parts.fragment)} if path in EXPLORERS else set()
            if not (site.folder / path).is_file() or unquote(parts.fragment) not in anchors:
                broken.append(f"{name} -> {target}")
    assert broken == unencrypted == []
