"""Reports as files on a page, as a browser would see the links."""

from __future__ import annotations

import base64
import json
from html.parser import HTMLParser

from cradle_lib.detection import Predictions
from cradle_lib.display.downloads import downloads
from cradle_lib.scoring.core.report import report, report_files


class Links(HTMLParser):
    """Collects links: file name, type, content, spoken name."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            values = dict(attrs)
            head, _, data = (values["href"] or "").partition(";base64,")
            content = base64.b64decode(data, validate=True).decode()
            spoken = values["aria-label"] or ""
            self.found.append(
                (values["download"] or "", head.removeprefix("data:"), content, spoken)
            )


def test_a_report_is_a_file_beside_its_schema(runs: list[Predictions]) -> None:
    made = report(runs[1], draws=10)
    shown = downloads(report_files([runs[1]], draws=10))
    assert repr(shown) == "keyword-surrogate-test.json, report.schema.json"
    page = shown._repr_html_()
    assert "<keyword>" not in page
    (_, media, content, spoken), (_, _, schema, _) = Links(page).found
    assert media == "application/json"
    assert content == made.to_json()
    assert "alert('x')" not in content
    assert "Model <keyword>" in spoken
    assert "properties" in json.loads(schema)
    assert downloads(report_files([]))._repr_html_() == ""
