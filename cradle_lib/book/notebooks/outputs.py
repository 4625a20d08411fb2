"""The outputs of builds: they belong to one corpus, and contain the pages of the book only.

A page that the book no longer has is removed with its source, its pictures and its files.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from cradle_lib.book.cache_key import digest, stored_state
from cradle_lib.book.corpus import BookCorpus
from cradle_lib.book.plan import Project
from cradle_lib.display.explorer.page_files import FOLDER, PAGE_FILES, take_page_files
from cradle_lib.errors import BookError
from cradle_lib.files import replacing, visible_files

_BUILD: Final = "_build"


def remove_other_corpus(project: Project, corpus: BookCorpus, out: Path) -> bool:
    """Removes the build and the executed notebooks if another corpus went into them.

    A page may show text that must not be published with another book. Executed notebooks that do
    not depend on the corpus stay. Pages are removed only if ``out`` is inside a folder ``_build``,
    with everything in that folder. Gives whether anything was removed. The files of the corpus
    must exist.
    """
    files = {file: digest((project.root / file).read_bytes()) for file in corpus.files("test")}
    others = _made_from_another_corpus(project, corpus, files)
    build = next((folder for folder in out.parents if folder.name == _BUILD), None)
    if others and build is not None:
        # First the pages: if this is interrupted, the next build finds the notebooks and goes on.
        shutil.rmtree(build, ignore_errors=True)
        out.mkdir(parents=True)
    for path in others:
        path.unlink()
    return bool(others)


def _made_from_another_corpus(
    project: Project, corpus: BookCorpus, files: Mapping[str, str]
) -> list[Path]:
    """Executed notebooks that another corpus, or another content of its files, went into."""
    choice, found = json.dumps(corpus.choice), []
    for path in visible_files(project.sections, "*.ipynb"):
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

    A page offers its notebook as it was written, in place of the executed one. A file that would
    lie elsewhere than in the folder of such files is an error.
    """
    wanted: dict[Path, str] = {}
    for notebook in visible_files(project.sections, "*.ipynb"):
        text = notebook.read_text(encoding="utf-8")
        copy = out / "_sources" / project.sections.name / notebook.name
        if copy.is_file() and (state := stored_state(notebook)) is not None:
            shutil.copyfile(project.root / state["source"], copy)
        if f'"{PAGE_FILES}"' not in text:
            continue
        for name, written in take_page_files(json.loads(text)).items():
            if ".." in Path(name).parts or Path(name).parts[:1] != (FOLDER,):
                problem = f"carries a file for {name!r}, which is not in {FOLDER}"
                raise BookError(problem, path=notebook)
            wanted[out / name] = written
    for path, written in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        # What a path holds is part of its name: what is there need not be written again.
        if not path.is_file():
            with replacing(path) as part:
                part.write_text(written, encoding="utf-8")
    for folder in (out / FOLDER).glob("*"):
        if not any(folder in path.parents for path in wanted):
            shutil.rmtree(folder)


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())
