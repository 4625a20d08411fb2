"""The plan of the executed pages: ``notebooks/pages.yml``.

One entry makes one page, or one page for each model that the registry marks as default::

    pages:
      - page: inference-{model}
        for_each: models
        notebook: inference.ipynb
        title: "Inference: {name}"
        parameters: {model: "{model}", corpus: "{corpus}"}
        inputs: ["corpus:test"]
        inputs_of: {tfidf: ["corpus:train"]}
        provides: ["runs/{corpus_name}/{model}.jsonl"]
      - page: results
        notebook: results.ipynb
        runs: true
        inputs: ["corpus:test", "data/published/*.csv"]

``{model}`` is the model's id and ``{name}``, in a title, its name on pages. ``{corpus}`` is the
book's corpus, ``{corpus_name}`` what its runs are filed under, and ``{training}`` the corpus
whose train and dev splits are shown, empty if there are none. A ``title`` replaces the
notebook's own.

A pattern of ``provides`` with ``{model}``, on a page about all default models, is one pattern for
each of them.

``inputs`` are the files that the notebook reads: patterns relative to the repository, each of
which must match something, or a split of the book's corpus. ``inputs_of`` adds some for one
model. ``provides`` are the files that exist once the page has been executed, for the pages that
come ``after`` it; at least one of the patterns must match. ``runs`` says that the page reads all
runs over the book's corpus: it comes after every page that provides something.
"""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal

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

    page: str = Field(pattern=r"^[A-Za-z0-9{][A-Za-z0-9{}._-]*$")
    notebook: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\.ipynb$")
    for_each: Literal["models"] | None = None
    title: str | None = None
    parameters: dict[str, Any] = {}
    inputs: tuple[Pattern, ...] = ()
    inputs_of: dict[str, tuple[Pattern, ...]] = {}
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
        title: What stands in place of the notebook's own title, if it is not that.
        parameters: Values for the notebook's parameters, checked.
        inputs: Patterns that must match, relative to the repository or absolute.
        provides: Patterns of the artefacts.
        after: Names of the pages whose artefacts this one reads.
        runs: Patterns of the runs that it reads.
        model: The registry's entries as canonical JSON, for a page of one or all default models.
    """

    name: str
    notebook: Notebook
    title: str | None
    parameters: Mapping[str, Any]
    inputs: tuple[str, ...]
    provides: tuple[str, ...]
    after: tuple[str, ...]
    runs: tuple[str, ...]
    model: str | None


def default_models(project: Project, corpus: BookCorpus) -> tuple[dict[str, str], list[str]]:
    """Reads which models have a page.

    A baseline is run by its page, if the corpus has what it learns from. Any other model needs
    hardware, time or money that building a book must not spend: it has a page once there is a
    journal. Gives id to canonical JSON of the entry, for the default models that have a page, in
    order; and the ids of the others.
    """
    from cradle_lib.detection.engine import find_engine
    from cradle_lib.detection.journal_paths import stored_as
    from cradle_lib.detection.registry import load_registry

    shown: dict[str, str] = {}
    lacking: list[str] = []
    for model in load_registry(project.root / "models.yml").default:
        name = model.id
        journals = (f"{folder}/{corpus.name}/{name}.jsonl" for folder in ("data/runs", "runs"))
        teachable = bool(corpus.training) or not find_engine(model.engine).learns
        runs_here = model.kind == "baseline" and teachable
        if runs_here or any(stored_as(project.root / journal) for journal in journals):
            shown[name] = json.dumps(model.model_dump(mode="json"), sort_keys=True)
        else:
            lacking.append(name)
    return shown, lacking


def load_plan(
    project: Project, models: Mapping[str, str], corpus: BookCorpus | None = None
) -> tuple[Page, ...]:
    """Reads, expands and checks the plan; gives the pages, each after those that it reads from.

    ``models`` are the ids that ``for_each: models`` stands for, with their entries.

    Raises:
        BookError: If the plan is malformed, a name is used twice, a page reads from one that
            does not exist or from itself, or a notebook does not declare a parameter.
    """
    corpus = corpus or BookCorpus()
    entries = read_plan(project.plan)
    made = {entry.page: _made(entry, models) for entry in entries}
    if len(made) < len(entries):
        raise BookError("two entries have the same page", path=project.plan)
    pages: dict[str, Page] = {}
    for entry in entries:
        for unknown in set(entry.after) - set(made):
            problem = f"page {entry.page!r} comes after {unknown!r}, which is no entry"
            hint = f"Entries: {', '.join(made)}."
            raise BookError(problem, path=project.plan, hint=hint)
        before = [*entry.after, *(e.page for e in entries if entry.runs and e.provides)]
        after = tuple(dict.fromkeys(name for item in before for name, _ in made[item]))
        notebook = Notebook.read(project.notebooks / entry.notebook)
        for name, model in made[entry.page]:
            if name in pages:
                raise BookError(f"page {name!r} is made twice", path=project.plan)
            about = models if model is None else {model: models[model]}
            pages[name] = _page(entry, name, notebook, after, corpus, about)
    try:
        order = TopologicalSorter({name: page.after for name, page in pages.items()}).static_order()
        return tuple(pages[name] for name in order)
    except CycleError as error:
        problem = f"pages wait for each other: {' -> '.join(error.args[1])}"
        raise BookError(problem, path=project.plan) from None


def read_plan(path: Path) -> tuple[Entry, ...]:
    """Reads the entries of a plan, as they are written."""
    return read_yaml(path, _Plan, "no plan of the pages").pages


def _made(entry: Entry, models: Mapping[str, str]) -> list[tuple[str, str | None]]:
    """The pages of an entry, each with its model if it is about one."""
    if entry.for_each:
        return [(entry.page.replace("{model}", model), model) for model in models]
    return [(entry.page, None)]


def _page(
    entry: Entry,
    name: str,
    notebook: Notebook,
    after: tuple[str, ...],
    corpus: BookCorpus,
    models: Mapping[str, str],
) -> Page:
    """Fills the slots of an entry; ``models`` are those of the page, with their entries."""
    slots = {
        "{corpus}": corpus.choice,
        "{corpus_name}": corpus.name,
        "{training}": corpus.training,
    }
    own: tuple[str, ...] = ()
    if entry.for_each:
        [(model, content)] = models.items()
        slots |= {"{model}": model, "{name}": json.loads(content)["name"]}
        own = entry.inputs_of.get(model, ())
    of_all = not entry.for_each and any("{model}" in pattern for pattern in entry.provides)

    def patterns(written: Sequence[str]) -> tuple[str, ...]:
        found: list[str] = []
        for pattern in written:
            if pattern.startswith(_SPLIT):
                found.extend(corpus.files(pattern.removeprefix(_SPLIT)))
                continue
            for model in models if of_all and "{model}" in pattern else [""]:
                filled = slots | {"{model}": model} if model else slots
                # A name with brackets stands for itself alone.
                found.append(_filled(pattern, filled, glob.escape))
        return tuple(dict.fromkeys(found))

    parameters = _filled(entry.parameters, slots)
    notebook.check_parameters(parameters)
    return Page(
        name=name,
        notebook=notebook,
        title=_filled(entry.title, slots),
        parameters=parameters,
        inputs=patterns((*entry.inputs, *own)),
        provides=patterns(entry.provides),
        after=after,
        runs=patterns(_RUNS if entry.runs else ()),
        model="\n".join(models.values()) if entry.for_each or of_all else None,
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
