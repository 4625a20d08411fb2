"""Internal links of the built book."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

from .site import Site

EXPLORERS = {"sections/explore.html"}


class Reader(HTMLParser):
    """Collects the link targets and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = {"", "#"}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.targets |= {values[name] for name in ("href", "src") if name in values}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}


def test_every_internal_link_has_a_target(site: Site) -> None:
    names = [*site.pages, *site.redirects]
    pages = {name: Reader((site.folder / name).read_text("utf-8")) for name in names}
    broken, unencrypted = [], []
    for name, reader in pages.items():
        for target in reader.targets:
            # The host is a placeholder for parsing.
            parts = urlsplit(urljoin(f"http://book/{name}", target))
            unencrypted += [target] if target.startswith("http:") else []
            if parts.scheme not in ("http", "https") or parts.netloc != "book":
                continue
            path = unquote(parts.path).lstrip("/") or "index.html"
            anchors = pages[path].anchors if path in pages else {"", parts.fragment}
            # Fragments of explorer links are views, tested in test_explorer_links.
            anchors |= {unquote(parts.fragment)} if path in EXPLORERS else set()
            if not (site.folder / path).is_file() or unquote(parts.fragment) not in anchors:
                broken.append(f"{name} -> {target}")
    assert broken == unencrypted == []
