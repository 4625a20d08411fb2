"""What a page need not carry, so that it opens at once.

The theme brings a script with two thousand icons and styles for everything that its framework
knows. Of both, a built site keeps what its pages name, and its scripts no longer log what they do.

An executed notebook holds its figures and the files that it offers, as text, so that it can be
moved and saved as one file. On a page of the site, large ones are links: a figure is loaded when it
comes into view, and only in the theme that is shown; a file when a reader asks for it.
"""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from cradle_lib.errors import BookError
from cradle_lib.files import replacing

_WORD: Final = re.compile(r"[A-Za-z_][\w-]*")
_FILE_IN_PAGE: Final = re.compile(r"base64,[A-Za-z0-9+/=]*")
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_BRACE: Final = re.compile(r"[{}]")
_NAME: Final = re.compile(r"[.#](-?[A-Za-z_][\w-]*)")
# What a selector says of attributes, or of elements that may as well be others.
_ELSE: Final = re.compile(r"\[[^\]]*\]|:(?:not|is|where|has)\([^()]*(?:\([^()]*\)[^()]*)*\)")
_COMMA: Final = re.compile(r",(?![^(]*\))")
_ICON: Final = re.compile(r"\bfa-([a-z][a-z0-9-]*)")
_LOGGED: Final = re.compile(r"\bconsole\.log\((?!\))")
# Words that say how an icon is drawn, and not which one.
_STYLES: Final = frozenset(
    {"solid", "regular", "brands", "lg", "sm", "xs", "fw", "spin", "stack", "light", "thin"}
)
# Where the set before the solid icons ends.
_SET_BEFORE: Final = '("fa-regular",'
_LOOK: Final = """\
/* Icons of Font Awesome Free (CC BY 4.0, https://fontawesome.com): those that the pages use. */
.fas, .fa-solid {
  display: inline-block; width: 1em; height: 1em; vertical-align: -0.125em;
  background: currentcolor; mask: var(--icon) center / contain no-repeat;
  forced-color-adjust: preserve-parent-color;
}
.fa-lg { font-size: 1.25em; vertical-align: -0.075em; }
"""
#: Folder of the site in which the files lie, each in a folder named by its content.
FOLDER: Final = "_files"
#: Characters of base64 that a page may hold in one piece.
LARGEST: Final = 16_000
_HELD: Final = rf'data:[\w.+-]+/([\w.+-]+);base64,([A-Za-z0-9+/=]{{{LARGEST},}})"'
_OFFERED: Final = re.compile(rf'(<a download="([^"]+)"[^<>]* href=")(?:{_HELD})')
_SHOWN: Final = re.compile(rf'(<img [^<>]*?)src="(?:{_HELD})')
_NAMED: Final = re.compile(rf'="(?:\.\./)*{FOLDER}/([0-9a-f]+)/')


def lighten(out: Path, own: Collection[str]) -> None:
    """Leaves the styles and icons of a built site that its pages can use.

    The book's ``own`` styles and scripts, named here, stay as they are. If a page names an icon
    that the theme does not bring, that is an error.
    """
    static = out / "_static"
    # The theme puts templates of its own there, which are no pages.
    pages = (page for page in out.rglob("*.html") if static not in page.parents)
    words = _words([*pages, *static.glob("*.js"), *static.glob("scripts/*.js")])
    for script in static.glob("vendor/fontawesome/*/js/all.min.js"):
        names = {name for word in words for name in _ICON.findall(word)} - _STYLES
        (static / "icons.css").write_text(icons(script, names), encoding="utf-8")
        # With the fonts it is most of what the site would weigh.
        shutil.rmtree(static / "vendor")
        break
    for script in static.rglob("*.js"):
        text = script.read_text(encoding="utf-8")
        if script.name not in own and "console.log(" in text:
            # What the theme tells its own developers.
            script.write_text(_LOGGED.sub("void(", text), encoding="utf-8")
    for style in static.rglob("*.css"):
        if style.name not in (*own, "icons.css"):
            text = style.read_text(encoding="utf-8")
            style.write_text(pruned(text, words), encoding="utf-8")


def icons(script: Path, names: Collection[str]) -> str:
    """Writes a style for solid icons: the shape of each as a mask, in the colour of the text.

    Their script ends with the solid ones. The style asks for no other file.
    """
    solid = script.read_text(encoding="utf-8").rpartition(_SET_BEFORE)[2]
    rules = []
    for name in sorted(names):
        shape = re.search(rf'[{{,]"?{name}"?:\[(\d+),(\d+),\[[^\]]*\],"[0-9a-f]+","([^"]+)"', solid)
        if shape is None:
            raise BookError(f"the theme has no solid icon {name!r}", path=script)
        width, height, path = shape.groups()
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
            f'<path d="{path}"/></svg>'
        )
        rules.append(
            f'.fa-{name} {{ --icon: url("data:image/svg+xml,{quote(svg, safe=" =:/")}"); }}'
        )
    return _LOOK + "\n".join(rules) + "\n"


def pruned(style: str, words: Collection[str]) -> str:
    """Leaves out rules whose classes or ids are none of the words; again, it changes nothing."""
    kept = []
    for head, body in _rules(_COMMENT.sub("", style)):
        head = head.strip()
        if body is None:
            kept.append(head)
        elif head.startswith(("@media", "@supports")):
            inner = pruned(body, words)
            kept += [f"{head}{{{inner}}}"] if inner else []
        elif head.startswith("@"):
            kept.append(f"{head}{{{body}}}")
        else:
            met = [part for part in _COMMA.split(head) if _met(part, words)]
            kept += [f"{','.join(met)}{{{body}}}"] if met else []
    return "\n".join(kept)


def _met(selector: str, words: Collection[str]) -> bool:
    return all(name in words for name in _NAME.findall(_ELSE.sub("", selector)))


def _rules(style: str) -> Iterator[tuple[str, str | None]]:
    """Head and body of each rule of the outer level; a statement has no body."""
    place = 0
    while found := re.compile(r"[{;]").search(style, place):
        if found[0] == ";":
            yield style[place : found.end()], None
            place = found.end()
            continue
        depth, end = 1, found.end()
        while depth and (brace := _BRACE.search(style, end)):
            depth += 1 if brace[0] == "{" else -1
            end = brace.end()
        yield style[place : found.start()], style[found.end() : end - 1]
        place = end


def _words(files: Collection[Path]) -> set[str]:
    return {
        word
        for file in files
        for word in _WORD.findall(_FILE_IN_PAGE.sub("", file.read_text(encoding="utf-8")))
    }


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
