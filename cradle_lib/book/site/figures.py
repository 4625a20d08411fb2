"""Figures and downloads of a page as files beside it.

An executed notebook contains its figures and downloads as base64 text, so that it can be moved and
saved as one file. On a page of the site, large ones become links: a figure is loaded when it comes
into view, and only in the theme that is shown; a file when a reader asks for it.
"""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
import shutil
from pathlib import Path
from typing import Final

from cradle_lib.files import replacing

#: Folder of the site in which the files lie, each in a folder named by its content.
FOLDER: Final = "_files"
#: Characters of base64 that a page may hold in one piece.
LARGEST: Final = 16_000
_HELD: Final = rf'data:[\w.+-]+/([\w.+-]+);base64,([A-Za-z0-9+/=]{{{LARGEST},}})"'
_OFFERED: Final = re.compile(rf'(<a download="([^"]+)"[^<>]* href=")(?:{_HELD})')
_SHOWN: Final = re.compile(rf'(<img [^<>]*?)src="(?:{_HELD})')
_NAMED: Final = re.compile(rf'="(?:\.\./)*{FOLDER}/([0-9a-f]+)/')


def put_beside(out: Path) -> None:
    """Writes the large files of all pages beside them, and removes those that no page has.

    A page that Sphinx did not write again is left as it is.
    """
    kept = set()
    for page in sorted(out.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        top = os.path.relpath(out, page.parent)

        def offered(found: re.Match[str], top: str = top) -> str:
            start, name, _, held = found.groups()
            return f'{start}{_written(out, top, html.unescape(name), held)}"'

        def shown(found: re.Match[str], top: str = top) -> str:
            start, kind, held = found.groups()
            address = _written(out, top, f"figure.{kind.partition('+')[0]}", held)
            return f'{start}loading="lazy" src="{address}"'

        lighter = _SHOWN.sub(shown, _OFFERED.sub(offered, text))
        if lighter != text:
            with replacing(page) as part:
                part.write_text(lighter, encoding="utf-8")
        kept |= {*_NAMED.findall(lighter)}
    for folder in (out / FOLDER).glob("*"):
        if folder.name not in kept:
            shutil.rmtree(folder)


def _written(out: Path, top: str, name: str, held: str) -> str:
    """Writes a file and gives its address; what it holds is part of the address."""
    content = base64.b64decode(held)
    address = f"{FOLDER}/{hashlib.sha256(content).hexdigest()[:12]}/{Path(name).name}"
    path = out / address
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file():
        with replacing(path) as part:
            part.write_bytes(content)
    return html.escape(address if top == "." else f"{top}/{address}")
