"""The plan of the executed pages: ``notebooks/pages.yml``.

One entry makes one page::

    pages:
      - page: runs
        notebook: runs.ipynb
        parameters: {corpus: "{corpus}"}
        provides: ["runs/{corpus_name}/{model}.jsonl"]
      - page: statistics
        notebook: statistics.ipynb
        parameters: {corpus: "{corpus}", training: "{training}"}
        runs: false

``{corpus}`` is the book's corpus, ``{corpus_name}`` the folder of its runs, and ``{training}`` the
corpus whose train and dev splits are shown, empty if there are none. ``{text}`` says whether the
text of a corpus that is not the surrogate may be shown. A pattern with ``{model}`` expands to one
pattern for the id of each default model.

``provides`` has patterns, relative to the repository, of files that the page writes for other
pages. ``after`` has the names of pages whose files this page reads. A page depends on the book's
corpus if it has the parameter ``{corpus}``.

``runs`` says whether the page reads the runs over the book's corpus. Then it is executed after the
pages with ``provides``, and again whenever a run was added or changed. By default, pages about the
book's corpus read its runs, except those with ``provides``. ``reads`` has patterns of further runs
after whose changes the page is executed again.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from cradle_lib.book.corpus import BookCorpus
from cradle_lib.book.notebooks.notebook import Notebook
from cradle_lib.book.yaml_file import read_yaml
from cradle_lib.errors import BookError

#: The registry of models: its order is that of the systems on a page.
REGISTRY: Final = "models.yml"
_RUNS: Final = (
    "runs/{corpus_name}/*.jsonl",
    "runs/repeats/*/*/{corpus_name}/*.jsonl",
    # Thresholds are chosen on the dev split.
    "runs/{corpus}-dev/*.jsonl",
)


class Entry(BaseModel):
    """One entry of the plan, before expansion. See the module for the meaning of the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    page: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        description="letters, digits, '.', '_' and '-', starting with a letter or digit",
    )
    notebook: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\.ipynb$",
        description="the name of a notebook, such as results.ipynb, without a folder",
    )
    parameters: dict[str, Any] = {}
    provides: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    runs: bool | None = None
    reads: tuple[str, ...] = ()

    @property
    def about_corpus(self) -> bool:
        """Whether the page is about the book's corpus."""
        return "{corpus}" in self.parameters.values()

    @property
    def reads_runs(self) -> bool:
        """Whether the page shows runs, which other pages may make."""
        return self.about_corpus and not self.provides if self.runs is None else self.runs


class _Plan(BaseModel):
    model_config = ConfigDict(extra="forbid")

    pages: tuple[Entry, ...]


@dataclass(frozen=True)
class Project:
    """The folders of the book: ``root`` is the repository, ``packages`` those of the library."""

    root: Path
    packages: tuple[str, ...] = ("cradle_lib", "cradle_engines", "cradle_extras")

    @cached_property
    def notebooks(self) -> Path:
        """The sources."""
        return self.root / "notebooks"

    @cached_property
    def plan(self) -> Path:
        """The plan."""
        return self.notebooks / "pages.yml"

    @cached_property
    def sections(self) -> Path:
        """The executed notebooks."""
        return self.root / "book" / "sections"

    @cached_property
    def work(self) -> Path:
        """Folder in which notebooks are executed, and where tracebacks are kept."""
        return self.root / "book" / "_build" / "notebook-runs"

    @cached_property
    def toc(self) -> Path:
        """The table of contents."""
        return self.root / "book" / "_toc.yml"

    def shown(self, path: Path) -> str:
        """Shortens a path for messages."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)


@dataclass(frozen=True, slots=True)
class Page:
    """One page to be executed; patterns are relative to the repository.

    Attributes:
        name: Name of the output, without suffix.
        notebook: The source.
        parameters: Values for the notebook's parameters, checked.
        corpus: The book's corpus, if the page depends on it.
        provides: Patterns of the artefacts.
        after: Names of the pages whose artefacts this one reads.
        runs: Patterns of the runs that it reads.
    """

    name: str
    notebook: Notebook
    parameters: dict[str, Any]
    corpus: BookCorpus | None
    provides: tuple[str, ...]
    after: tuple[str, ...]
    runs: tuple[str, ...]


def load_plan(
    project: Project, models: Sequence[str], corpus: BookCorpus | None = None
) -> tuple[Page, ...]:
    """Reads, expands and checks the plan.

    ``models`` are the ids that replace ``{model}``.

    Raises:
        BookError: If the plan is malformed, a name is used twice, pages wait for each other or for
            an unknown page, or a notebook does not declare a parameter.
    """
    corpus = corpus or BookCorpus()
    plan = read_plan(project.plan)
    pages: dict[str, Page] = {}
    for entry in plan:
        if entry.page in pages:
            raise BookError(f"two entries have the same page {entry.page!r}", path=project.plan)
        notebook = Notebook.read(project.notebooks / entry.notebook)
        notebook.check_parameters(entry.parameters)
        pages[entry.page] = Page(
            name=entry.page,
            notebook=notebook,
            parameters={
                name: corpus.training(project.root) if x == "{training}" else _filled(x, corpus)
                for name, x in entry.parameters.items()
            },
            corpus=corpus if entry.about_corpus else None,
            provides=_patterns(entry.provides, models, corpus),
            after=tuple(dict.fromkeys([*entry.after, *_makers_before(entry, plan)])),
            runs=_patterns((*(_RUNS if entry.reads_runs else ()), *entry.reads), models, corpus),
        )
    for page in pages.values():
        for name in page.after:
            if name not in pages:
                problem = f"{page.name} comes after {name!r}, which is no page"
                raise BookError(problem, path=project.plan)
    try:
        TopologicalSorter({page.name: page.after for page in pages.values()}).prepare()
    except CycleError as error:
        problem = f"pages wait for each other: {' after '.join(error.args[1][::-1])}"
        raise BookError(problem, path=project.plan, hint="Remove one from an `after`.") from None
    return tuple(pages.values())


def _makers_before(entry: Entry, plan: Sequence[Entry]) -> list[str]:
    """Names the pages that make runs before this page reads them.

    A page that makes and reads runs does not wait for those that come after it by the plan, and
    not for others of its kind. It is executed again if they changed a run.
    """
    if not entry.reads_runs:
        return []
    makers = [each for each in plan if each.provides and entry.page not in {each.page, *each.after}]
    return [each.page for each in makers if not (entry.provides and each.reads_runs)]


def read_plan(path: Path) -> tuple[Entry, ...]:
    """Reads the entries of a plan, before expansion."""
    return read_yaml(path, _Plan).pages


def _patterns(written: Sequence[str], models: Sequence[str], corpus: BookCorpus) -> tuple[str, ...]:
    # Inserted names are escaped, because brackets have a meaning in patterns.
    found = [
        _filled(pattern, corpus, model, escape=True)
        for pattern in written
        for model in (models if "{model}" in pattern else [""])
    ]
    return tuple(dict.fromkeys(found))


def _filled(value: Any, corpus: BookCorpus, model: str = "", *, escape: bool = False) -> Any:
    """Fills the slots of a text in one pass, so that slots in inserted values are not filled."""
    if not isinstance(value, str):
        return value
    if value == "{text}":
        return corpus.text
    slots = {
        "{corpus}": corpus.choice,
        "{corpus_name}": corpus.name,
        "{model}": model,
    }
    write = glob.escape if escape else str
    return re.sub("|".join(map(re.escape, slots)), lambda slot: write(slots[slot[0]]), value)
