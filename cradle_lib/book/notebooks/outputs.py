"""Outputs of builds: removes unused ones, and writes the files that pages load."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Final

from cradle_lib.book.cache_key import stored_state
from cradle_lib.book.corpus import BookCorpus
from cradle_lib.book.plan import Project
from cradle_lib.display.explorer.page_files import FOLDER, PAGE_FILES, take_page_files
from cradle_lib.files import visible_files, write_text

_BUILD: Final = "_build"


def remove_other_corpus(project: Project, corpus: BookCorpus, out: Path) -> bool:
    """Removes the build and the executed notebooks that were made from another corpus.

    A page may show text that must not be published with another book. Executed notebooks that do
    not depend on the corpus stay. Pages are removed only if ``out`` is inside a folder ``_build``,
    with everything in that folder. Gives whether anything was removed.
    """
    current = corpus.identity(project.root)
    others = [
        path
        for path in visible_files(project.sections, "*.ipynb")
        if (stored_state(path) or {}).get("ingredients", {}).get("corpus", current) != current
    ]
    build = next((folder for folder in out.parents if folder.name == _BUILD), None)
    if others and build is not None:
        # Pages first: if this is interrupted, the next build finds the notebooks and continues.
        shutil.rmtree(build, ignore_errors=True)
        out.mkdir(parents=True)
    for path in others:
        path.unlink()
    return bool(others)


def remove_old_pages(out: Path, pages: Collection[str], images: Collection[str]) -> None:
    """Removes the pages and figures of the site that earlier builds made and no page uses now.

    Args:
        out: Folder of the site.
        pages: Paths of the current pages in the site, without suffix.
        images: Names of the files that the pages show.
    """
    sources = out / "_sources"
    for source in visible_files(sources, "**/*.*"):
        page = source.relative_to(sources).with_suffix("").as_posix()
        if page not in pages:
            source.unlink()
            (out / f"{page}.html").unlink(missing_ok=True)
    for image in visible_files(out / "_images", "*.*"):
        if image.name not in images:
            image.unlink()


def place_files(project: Project, out: Path) -> None:
    """Writes the files that executed notebooks contain into the site, and removes older ones.

    The notebook that a page offers for download is replaced by its source.
    """
    used = set()
    for notebook in visible_files(project.sections, "*.ipynb"):
        text = notebook.read_text(encoding="utf-8")
        copy = out / "_sources" / project.sections.name / notebook.name
        if copy.is_file() and (state := stored_state(notebook)) is not None:
            shutil.copyfile(project.root / state["source"], copy)
        files = take_page_files(json.loads(text)) if f'"{PAGE_FILES}"' in text else {}
        for name, content in files.items():
            path = Path(name)
            used.add(path.parts[1])
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            # The path contains a hash of the contents, so existing files are up to date.
            if not (out / path).is_file():
                write_text(out / path, content)
    for folder in (out / FOLDER).glob("*"):
        if folder.name not in used:
            shutil.rmtree(folder)
