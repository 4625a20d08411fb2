"""Pictures of every page, wide and on a phone, light and dark.

Run from the top of the repository: ``python -m tests.book.screenshots OUT [PAGE ...]``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.book.site import PHONE, ROOT, WIDE, browser, serve, set_theme


def main(out: Path, chosen: list[str]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with serve(ROOT / "book/_build/html") as site, browser() as opened:
        for name in site.pages:
            if chosen and Path(name).stem not in chosen:
                continue
            for width, height in (WIDE, PHONE):
                size = {"width": width, "height": height}
                page = opened.new_page(viewport=size, reduced_motion="reduce")
                page.goto(site.url(name), wait_until="load")
                for theme in ("light", "dark"):
                    set_theme(page, theme)
                    file = out / f"{Path(name).stem}-{width}-{theme}.png"
                    page.screenshot(path=file, full_page=True)
                    print(file)
                page.close()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2:])
