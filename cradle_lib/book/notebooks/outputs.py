"""What a build leaves behind: it belongs to one corpus, and holds only what the book holds.

A page may hold text that must not be published with another book. So what was made of one corpus is
put aside, out of the output folder, when a book about another one is built into it, and comes back
with its corpus; and a page that the book no longer has is removed with its source, its pictures and
its files.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Final

from cradle_lib.book.cache_key import digest, stored_state
from cradle_lib.book.corpus import BookCorpus
from cradle_lib.book.plan import Project
from cradle_lib.display.explorer.carried import CARRIED, FOLDER, carried
from cradle_lib.errors import BookError
from cradle_lib.files import replacing

_FOLDER: Final = "_build"
_MARK: Final = "corpus.json"
# Outside the book, where Sphinx looks for pages; near it, so that a rename is enough.
_ASIDE: Final = ".other-corpora"
_CALL: Final = ("Search.setIndex(", ")")


def claim(project: Project, corpus: BookCorpus, out: Path) -> bool:
    """Makes the outputs those of one corpus: what is left of another one is put aside.

    Which corpus they belong to stands in a file of the build folder. Executed notebooks that do
    not depend on the corpus stay. What was made of another content of the same file is removed, as
    is what nobody knows the corpus of. Gives whether there was any of this. The files of the corpus
    must exist; if the pages go to a place outside of a folder ``_build``, nothing happens.
    """
    build = next((folder for folder in out.parents if folder.name == _FOLDER), None)
    if build is None:
        return False
    files = {file: digest((project.root / file).read_bytes()) for file in corpus.files("test")}
    wanted = json.dumps({"corpus": corpus.choice, "files": files}, indent=1)
    mark = build / _MARK
    before = _text(mark)
    if before == wanted:
        return False
    # First of all: if this is interrupted, the folder belongs to nobody.
    mark.unlink(missing_ok=True)
    built = [*build.iterdir()] if build.is_dir() else []
    executed = _executed(project, corpus, files)
    found = any(path.is_file() or any(path.iterdir()) for path in (*built, *executed))
    shelves = project.root / _ASIDE
    choice = _choice(before) or corpus.choice
    if choice != corpus.choice:
        shelf = shelves / digest(choice.encode())
        _remove(shelf)
        for part, paths in (("build", built), ("sections", executed)):
            (shelf / part).mkdir(parents=True)
            for path in paths:
                path.rename(shelf / part / path.name)
        (shelf / _MARK).write_text(before, encoding="utf-8")
    for path in (*built, *executed):
        _remove(path)
    _remove(project.work)
    out.mkdir(parents=True, exist_ok=True)
    shelf = shelves / digest(corpus.choice.encode())
    # Not what was made of other contents of the corpus, nor what was not put aside whole.
    if _text(shelf / _MARK) == wanted:
        for part, place in (("build", build), ("sections", project.sections)):
            place.mkdir(parents=True, exist_ok=True)
            for path in (shelf / part).iterdir():
                _remove(place / path.name)
                path.rename(place / path.name)
    _remove(shelf)
    with replacing(mark) as part_file:
        part_file.write_text(wanted, encoding="utf-8")
    return found


def _text(mark: Path) -> str:
    return mark.read_text(encoding="utf-8", errors="replace") if mark.is_file() else ""


def _choice(mark: str) -> str:
    """The corpus that a mark names; nothing if it is no mark that was written here."""
    try:
        return str(json.loads(mark)["corpus"])
    except (ValueError, KeyError, TypeError):
        return ""


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _executed(project: Project, corpus: BookCorpus, files: dict[str, str]) -> list[Path]:
    """The executed notebooks that another corpus, or another content of this one, went into."""
    choice, found = json.dumps(corpus.choice), []
    for path in sorted(project.sections.glob("*.ipynb")):
        ingredients = (stored_state(path) or {}).get("ingredients") or {}
        inputs = (ingredients.get(f"input {file}", value) == value for file, value in files.items())
        if ingredients.get("parameter corpus", choice) != choice or not all(inputs):
            found.append(path)
    return found


def remove_orphans(out: Path, pages: Collection[str], kept: Collection[str]) -> list[str]:
    """Removes what earlier builds wrote and the book no longer has; gives the paths in ``out``.

    ``pages`` are paths without suffix; the pictures and files for download that are ``kept``, paths
    within their folders.
    """
    removed = []
    for source in _files(out / "_sources"):
        page = source.relative_to(out / "_sources").with_suffix("").as_posix()
        if page not in pages:
            removed += [source, out / f"{page}.html"]
    for folder in ("_images", "_downloads"):
        removed += [
            file
            for file in _files(out / folder)
            if file.relative_to(out / folder).as_posix() not in kept
        ]
    for file in removed:
        file.unlink(missing_ok=True)
    return [file.relative_to(out).as_posix() for file in removed]


def place_files(project: Project, out: Path) -> None:
    """Writes the files that executed notebooks carry into the site, and nothing else beside them.

    The copy of a notebook that a page offers for download is written without them. A file that
    would lie elsewhere than in the folder of such files is an error.
    """
    wanted: dict[Path, str] = {}
    for notebook in sorted(project.sections.glob("*.ipynb")):
        text = notebook.read_text(encoding="utf-8")
        if f'"{CARRIED}"' not in text:
            continue
        content = json.loads(text)
        for name, written in carried(content).items():
            if ".." in Path(name).parts or Path(name).parts[:1] != (FOLDER,):
                problem = f"carries a file for {name!r}, which is not in {FOLDER}"
                raise BookError(problem, path=notebook)
            wanted[out / name] = written
        copy = out / "_sources" / project.sections.name / notebook.name
        if copy.is_file():
            copy.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
    for path, written in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        # What a path holds is part of its name: what is there need not be written again.
        if not path.is_file():
            with replacing(path) as part:
                part.write_text(written, encoding="utf-8")
    for folder in (out / FOLDER).glob("*"):
        if not any(folder in path.parents for path in wanted):
            shutil.rmtree(folder)


def escape_search_titles(out: Path) -> None:
    """Escapes the titles of the search index, which the search page takes for HTML.

    Sphinx reads the index again when it builds the next time, so that this may be done twice.
    """
    path, (start, end) = out / "searchindex.js", _CALL
    if not path.is_file():
        return
    text = path.read_text(encoding="utf-8")
    index = json.loads(text.removeprefix(start).removesuffix(end))
    titles: dict[str, list[object]] = {}
    for title, places in index["alltitles"].items():
        titles.setdefault(title.replace("<", "&lt;").replace(">", "&gt;"), []).extend(places)
    if titles != index["alltitles"]:
        written = json.dumps({**index, "alltitles": titles}, sort_keys=True, separators=(",", ":"))
        with replacing(path) as part:
            part.write_text(f"{start}{written}{end}", encoding="utf-8")


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())
