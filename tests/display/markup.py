"""Parses HTML and SVG for tests."""

from __future__ import annotations

from html.parser import HTMLParser
from xml.etree import ElementTree


class Markup(HTMLParser):
    """Collects elements with their attributes, all text, and the text of each heading cell."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.headings: list[str] = []
        self._in_heading = False
        self.feed(source)

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    def all(self, name: str) -> list[dict[str, str | None]]:
        """Returns the attributes of each element with a tag name."""
        return [attributes for tag, attributes in self.elements if tag == name]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in_heading = tag == "th" or (self._in_heading and tag not in ("td", "tr"))
        self.headings += [""] * (tag == "th")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._in_heading:
            self.headings[-1] += data


def words(svg: bytes) -> set[str]:
    """Returns the texts of an SVG drawing."""
    nodes = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return {"".join(node.itertext()).strip() for node in nodes}
