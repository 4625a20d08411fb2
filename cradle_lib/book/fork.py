"""Copies a notebook to a new page: adds it to the plan and to the table of contents."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import yaml

from cradle_lib import paths
from cradle_lib.book.notebooks.notebook import find_title
from cradle_lib.book.plan import Project, read_plan
from cradle_lib.detection.models.registry import own_id
from cradle_lib.errors import BookError
from cradle_lib.files import write_text

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]*")
#: Tag of cells that explain how to use a page, and are left out of copies.
_GUIDE: Final = "guide"


def fork(project: Project, name: str) -> Path:
    """Makes a page of the book from a copy of the notebook *Add a model*.

    Gives the path of the copy. It belongs to the user: nothing overwrites it later.

    Raises:
        BookError: If the name is invalid or taken.
    """
    if not _NAME.fullmatch(name):
        problem = f"{name!r} is no valid name of a page"
        raise BookError(problem, hint="Use lower-case letters, digits and hyphens.")
    copy = project.notebooks / f"{name}.ipynb"
    entries = {entry.page: entry for entry in read_plan(project.plan)}
    if copy.exists() or name in entries:
        raise BookError("this page exists already", path=copy, hint="Choose another name.")
    run = f"runs/{{corpus_name}}/{own_id(name)}.jsonl"
    if any(run in entry.provides for entry in entries.values()):
        problem = "another page has a model whose run has this name"
        raise BookError(problem, path=copy, hint="Choose another name.")
    origin, source = project.notebooks / f"{paths.TEMPLATE}.ipynb", entries[paths.TEMPLATE]
    entry = source.model_dump(mode="json", exclude_defaults=True) | {
        "page": name,
        "notebook": copy.name,
        "parameters": {"name": name, **source.parameters},
        "provides": [run],
    }
    # Added as text, because loading and dumping YAML would lose its comments.
    lines = yaml.safe_dump([entry], sort_keys=False, default_flow_style=None).splitlines()
    before = project.plan.read_text(encoding="utf-8").rstrip("\n")
    write_text(copy, _copied(origin, name))
    write_text(project.plan, "\n".join([before, "", *(f"  {line}" for line in lines), ""]))
    toc = project.toc.read_text(encoding="utf-8")
    below = rf"\g<0>\1sections/{name}\n"
    write_text(project.toc, re.sub(rf"( *- file: )sections/{paths.TEMPLATE}\n", below, toc))
    return copy


def _copied(origin: Path, name: str) -> str:
    """Gives the notebook without its guide cells, and with the page's title."""
    content = json.loads(origin.read_text(encoding="utf-8"))
    content["cells"] = [c for c in content["cells"] if _GUIDE not in c["metadata"].get("tags", [])]
    if (title := find_title(content["cells"])) is not None:
        place, heading = title
        line = f"# {name.replace('-', ' ').capitalize()}"
        content["cells"][place]["source"] = heading.string.replace(heading[0], line, 1)
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"
