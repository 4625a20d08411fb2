"""The plan of the executed pages: ``notebooks/pages.yml``.

One entry makes one page::

    pages:
      - page: runs
        notebook: runs.ipynb
        parameters: {corpus: "{corpus}"}
        inputs: [models.yml, "corpus:test"]
        provides: ["runs/{corpus_name}/{model}.jsonl"]
      - page: results
        notebook: results.ipynb
        runs: true
        inputs: ["corpus:test", "data/published/*.csv"]

``{corpus}`` is the book's corpus, ``{corpus_name}`` what its runs are filed under, and
``{training}`` the corpus whose train and dev splits are shown, empty if there are none. A pattern
with ``{model}`` is one pattern for the id of each default model.

``inputs`` are the files that the notebook reads: patterns relative to the repository, each of
which must match something, or a split of the book's corpus. ``provides`` are the files that exist
once the page has been executed, for the pages that come ``after`` it; at least one of the patterns
must match. ``runs`` says that the page reads all runs over the book's corpus: it comes after every
page that provides something.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from cradle_lib.book.corpus import BookCorpus
from cradle_lib.book.notebooks.notebook import Notebook
from cradle_lib.book.yaml_file import read_yaml
from cradle_lib.errors import BookError

_SPLIT: Final = "corpus:"
_RUNS: Final = tuple(
    f"{folder}/{path}/*.jsonl"
    for folder in ("data/runs", "runs")
    for path in ("{corpus_name}", "repeats/*/*/{corpus_name}")
)
#: The registry of models: its order is that of the systems on a page.
REGISTRY: Final = "models.yml"
_SLOT: Final = re.compile(r"\{\w+\}")


def _relative(pattern: str) -> str:
    if pattern.startswith(_SPLIT):
        return pattern
    path = PurePosixPath(pattern)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError("must be relative to the repository, without '..'")
    return pattern


Pattern = Annotated[str, AfterValidator(_relative)]


class Entry(BaseModel):
    """One entry of the plan, as it is written. See the module for the meaning of the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    page: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    notebook: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\.ipynb$")
    parameters: dict[str, Any] = {}
    inputs: tuple[Pattern, ...] = ()
    provides: tuple[Pattern, ...] = ()
    after: tuple[str, ...] = ()
    runs: bool = False


class _Plan(BaseModel):
    model_config = ConfigDict(extra="forbid")

    pages: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Project:
    """Where the parts of the book lie.

    Attributes:
        root: Top of the repository.
        packages: Names of the library's packages, which lie at the top.
    """

    root: Path
    packages: tuple[str, ...] = ("cradle_lib", "cradle_extras")

    @property
    def notebooks(self) -> Path:
        """The sources."""
        return self.root / "notebooks"

    @property
    def plan(self) -> Path:
        """The plan."""
        return self.notebooks / "pages.yml"

    @property
    def sections(self) -> Path:
        """The executed notebooks."""
        return self.root / "book" / "sections"

    @property
    def work(self) -> Path:
        """Where notebooks run before they are moved into place, and tracebacks are kept."""
        return self.root / "book" / "_build" / "notebook-runs"

    @property
    def toc(self) -> Path:
        """The table of contents."""
        return self.root / "book" / "_toc.yml"

    def shown(self, path: Path) -> str:
        """Shortens a path for people."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)


@dataclass(frozen=True, slots=True)
class Page:
    """One page to be executed.

    Attributes:
        name: Name of the output, without suffix.
        notebook: The source.
        parameters: Values for the notebook's parameters, checked.
        inputs: Patterns that must match, relative to the repository or absolute.
        provides: Patterns of the artefacts.
        after: Names of the pages whose artefacts this one reads.
        runs: Patterns of the runs that it reads.
    """

    name: str
    notebook: Notebook
    parameters: Mapping[str, Any]
    inputs: tuple[str, ...]
    provides: tuple[str, ...]
    after: tuple[str, ...]
    runs: tuple[str, ...]


def load_plan(
    project: Project, models: Sequence[str], corpus: BookCorpus | None = None
) -> tuple[Page, ...]:
    """Reads, expands and checks the plan; gives the pages, each after those that it reads from.

    ``models`` are the ids that ``{model}`` stands for.

    Raises:
        BookError: If the plan is malformed, a name is used twice, a page reads from one that
            does not exist or from itself, or a notebook does not declare a parameter.
    """
    corpus = corpus or BookCorpus()
    plan = read_plan(project.plan)
    entries = {entry.page for entry in plan}
    if len(entries) < len(plan):
        raise BookError("two entries have the same page", path=project.plan)
    pages: dict[str, Page] = {}
    for entry in plan:
        for unknown in set(entry.after) - entries:
            problem = f"page {entry.page!r} comes after {unknown!r}, which is no entry"
            hint = f"Entries: {', '.join(sorted(entries))}."
            raise BookError(problem, path=project.plan, hint=hint)
        before = [*entry.after, *(e.page for e in plan if entry.runs and e.provides)]
        pages[entry.page] = _page(project, entry, tuple(dict.fromkeys(before)), models, corpus)
    try:
        order = TopologicalSorter({name: page.after for name, page in pages.items()}).static_order()
        return tuple(pages[name] for name in order)
    except CycleError as error:
        problem = f"pages wait for each other: {' -> '.join(error.args[1])}"
        raise BookError(problem, path=project.plan) from None


def read_plan(path: Path) -> tuple[Entry, ...]:
    """Reads the entries of a plan, as they are written."""
    return read_yaml(path, _Plan, "no plan of the pages").pages


def _page(
    project: Project,
    entry: Entry,
    after: tuple[str, ...],
    models: Sequence[str],
    corpus: BookCorpus,
) -> Page:
    """Fills the slots of an entry."""
    slots = {
        "{corpus}": corpus.choice,
        "{corpus_name}": corpus.name,
        "{training}": corpus.training,
    }

    def patterns(written: Sequence[str]) -> tuple[str, ...]:
        found: list[str] = []
        for pattern in written:
            if pattern.startswith(_SPLIT):
                found.extend(corpus.files(pattern.removeprefix(_SPLIT)))
                continue
            for model in models if "{model}" in pattern else [""]:
                # A name with brackets stands for itself alone.
                found.append(_filled(pattern, slots | {"{model}": model}, glob.escape))
        return tuple(dict.fromkeys(found))

    notebook = Notebook.read(project.notebooks / entry.notebook)
    parameters = _filled(entry.parameters, slots)
    notebook.check_parameters(parameters)
    return Page(
        name=entry.page,
        notebook=notebook,
        parameters=parameters,
        inputs=patterns(entry.inputs),
        provides=patterns(entry.provides),
        after=after,
        runs=patterns((*_RUNS, REGISTRY) if entry.runs else ()),
    )


def _filled(value: Any, slots: Mapping[str, str], write: Callable[[str], str] = str) -> Any:
    """Fills the slots of every string, however deep it lies."""
    if isinstance(value, dict):
        return {key: _filled(item, slots, write) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, slots, write) for item in value]
    if not isinstance(value, str):
        return value
    # All at once: what stands in one slot is no slot of its own.
    return _SLOT.sub(lambda slot: write(slots[slot[0]]) if slot[0] in slots else slot[0], value)
