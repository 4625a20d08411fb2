"""Copies a notebook into a page of one's own: notebook, plan and table of contents."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from cradle_lib import paths
from cradle_lib.book.notebooks.notebook import Notebook, find_title
from cradle_lib.book.plan import Entry, Project, read_plan
from cradle_lib.detection.baselines.function import id_of
from cradle_lib.errors import BookError
from cradle_lib.files import write_text

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]*")
#: Tag of cells that explain how to use a page, and are left out of copies.
_GUIDE: Final = "guide"


def fork(
    project: Project,
    name: str,
    source: str = paths.TEMPLATE,
    parameters: Mapping[str, Any] | None = None,
) -> Path:
    """Makes a page of the book from a copy of one of its notebooks.

    The copy, whose path is given, belongs to whoever asked for it: nothing writes to it again.
    ``source`` names the notebook that is copied, such as ``runs``.

    Raises:
        BookError: If the name can't be one or is taken, there is no such notebook, or it has no
            such parameter.
    """
    if not _NAME.fullmatch(name):
        problem = f"{name!r} can't name a page"
        raise BookError(problem, hint="Use small letters, digits and hyphens.")
    copy = project.notebooks / f"{name}.ipynb"
    entries = {entry.notebook: entry for entry in read_plan(project.plan)}
    if copy.exists() or any(entry.page == name for entry in entries.values()):
        raise BookError("this page exists already", path=copy, hint="Choose another name.")
    if f"{source}.ipynb" not in entries:
        known = ", ".join(sorted(Path(notebook).stem for notebook in entries))
        problem = f"no notebook {source!r} is in the plan"
        raise BookError(problem, path=project.plan, hint=f"There are: {known}.")
    origin = project.notebooks / f"{source}.ipynb"
    notebook = Notebook.read(origin)
    chosen = dict(parameters or {})
    if "name" in notebook.parameters():
        chosen.setdefault("name", name)
    entry = _entry(entries[origin.name], name, chosen)
    notebook.check_parameters(entry["parameters"])
    toc = _with_page(project.toc, name)
    # Added as text: a plan that was read and dumped would lose its comments.
    lines = yaml.safe_dump([entry], sort_keys=False, default_flow_style=None).splitlines()
    before = project.plan.read_text(encoding="utf-8").rstrip("\n")
    plan = "\n".join([before, "", *(f"  {line}" for line in lines), ""])
    write_text(copy, _renamed(origin, name))
    write_text(project.plan, plan)
    write_text(project.toc, toc)
    return copy


def _entry(source: Entry, name: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Makes the plan's entry: that of the source, with the journal of the copy's own model."""
    parameters = source.parameters | dict(chosen)
    entry = source.model_dump(mode="json", exclude_defaults=True, exclude={"provides"})
    entry |= {"page": name, "notebook": f"{name}.ipynb", "parameters": parameters}
    if "name" in parameters:
        journal = f"runs/{{corpus_name}}/{id_of(str(parameters['name']))}"
        entry["provides"] = [f"{journal}.jsonl"]
    elif source.provides:
        # The source writes the journals that the copy reads.
        entry["after"] = [source.page]
    return entry


def _with_page(toc: Path, name: str) -> str:
    text = toc.read_text(encoding="utf-8")
    place = re.search(rf"^(\s*)- file: sections/{paths.TEMPLATE}\n", text, flags=re.MULTILINE)
    if place is None:
        problem = f"sections/{paths.TEMPLATE}, after which a new page is added, is not listed"
        raise BookError(problem, path=toc, hint="Add the page by hand.")
    return f"{text[: place.end()]}{place[1]}- file: sections/{name}\n{text[place.end() :]}"


def _renamed(origin: Path, name: str) -> str:
    """The notebook without its guide, and with another title."""
    content = json.loads(origin.read_text(encoding="utf-8"))
    content["cells"] = [c for c in content["cells"] if _GUIDE not in c["metadata"].get("tags", [])]
    if (title := find_title(content["cells"])) is not None:
        place, heading = title
        line = f"# {name.replace('-', ' ').capitalize()}"
        content["cells"][place]["source"] = heading.string.replace(heading[0], line, 1)
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"
