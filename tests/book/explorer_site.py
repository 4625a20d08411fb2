"""Writes a site with only the explorer, to be opened from disk."""

from __future__ import annotations

from pathlib import Path

from cradle_lib.display.explorer.explorer import Explorer

ROOT = Path(__file__).resolve().parents[2]
FRAME = """<!DOCTYPE html>
<html lang="en" data-theme="light" data-mode="light">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Explore</title><link rel="icon" href="data:,"><style>{style}</style></head>
<body><main class="bd-main"><article class="bd-article"><h1>Explore</h1>{explorer}</article></main>
<footer><section class="cradle-help"><a href="tel:988">call 988</a></section></footer></body>
</html>
"""


def write_site(folder: Path, explorer: Explorer) -> str:
    """Writes the page and its files.

    Args:
        folder: Output folder; created if it is missing.
        explorer: The explorer on the page.

    Returns:
        The ``file:`` address of the page.
    """
    style = (ROOT / "book/_static/book.css").read_text(encoding="utf-8")
    page = FRAME.replace("{style}", style).replace("{explorer}", explorer._repr_html_())
    written = {f"{explorer.folder}/{name}": content for name, content in explorer.files.items()}
    written["sections/explore.html"] = page
    for name, content in written.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return (folder / "sections/explore.html").as_uri()
