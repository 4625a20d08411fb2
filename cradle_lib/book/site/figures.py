"""Moves large figures and downloads from pages to separate files.

An executed notebook contains them as base64 text, so that it is one file. On the site they become
links: a figure is loaded when it comes into view, a file when a reader asks for it.
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

from cradle_lib.files import write_text

#: Folder of the site with the files, each in a folder named by its content.
FOLDER: Final = "_files"
#: Characters of base64 that a page may contain in one piece.
LARGEST: Final = 16_000
# A download link with the name of its file, or a figure.
_EMBEDDED: Final = re.compile(
    r'(?:(?P<link><a download="(?P<name>[^"]+)"[^<>]* href=")|(?P<image><img [^<>]*?)src=")'
    rf'data:[\w.+-]+/(?P<kind>\w+)[\w.+-]*;base64,(?P<data>[A-Za-z0-9+/=]{{{LARGEST},}})"'
)
_FILE: Final = re.compile(rf'="(?:\.\./)*{FOLDER}/([0-9a-f]+)/')


def move_files(out: Path) -> None:
    """Moves the large embedded files of all pages to separate files, and removes unused ones.

    Pages that Sphinx did not rewrite link to their files already.
    """
    used = set()
    for page in sorted(out.rglob("*.html")):
        top = os.path.relpath(out, page.parent)

        def link(found: re.Match[str], top: str = top) -> str:
            content = base64.b64decode(found["data"])
            name = Path(html.unescape(found["name"] or f"figure.{found['kind']}")).name
            path = Path(FOLDER, hashlib.sha256(content).hexdigest()[:12], name)
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            (out / path).write_bytes(content)
            address = html.escape(os.path.normpath(f"{top}/{path.as_posix()}"))
            image = found["image"]
            start = f'{image}loading="lazy" src="' if image else found["link"]
            return f'{start}{address}"'

        text = page.read_text(encoding="utf-8")
        shorter = _EMBEDDED.sub(link, text)
        if shorter != text:
            write_text(page, shorter)
        used |= {*_FILE.findall(shorter)}
    for folder in (out / FOLDER).glob("*"):
        if folder.name not in used:
            shutil.rmtree(folder)
