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
from cradle_lib.errors import BookError, compose

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
        package: Name of the library, which lies at the top.
    """

    root: Path
    package: str = "cradle_lib"

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
        model: The registry's entry as canonical JSON, for a page of one model.
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
    journal.

    Args:
        project: Where the registry and the journals lie.
        corpus: The book's corpus.

    Returns:
        Id to canonical JSON of the entry, for the default models that have a page, in order;
        and the ids of the others.
    """
    from cradle_lib.detection.engine import find_engine
    from cradle_lib.detection.journals.places import stored_as
    from cradle_lib.detection.models.registry import load_registry

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
    """Reads, expands and checks the plan.

    Args:
        project: Where the plan and the notebooks lie.
        models: Ids of the models that ``for_each: models`` stands for, with their entries.
        corpus: The book's corpus; the surrogate if none is given.

    Returns:
        The pages, each after those that it reads from.

    Raises:
        BookError: If the plan is malformed, a name is used twice, a page reads from one that
            does not exist or from itself, or a notebook does not declare a parameter.
    """
    corpus = corpus or BookCorpus()
    entries = read_plan(project.plan)
    names = {entry.page: _names(entry, models) for entry in entries}
    if len(names) < len(entries):
        raise BookError(compose("two entries have the same page", path=project.plan))
    pages: dict[str, Page] = {}
    for entry in entries:
        for unknown in set(entry.after) - set(names):
            problem = f"page {entry.page!r} comes after {unknown!r}, which is no entry"
            raise BookError(
                compose(problem, path=project.plan, hint=f"Entries: {', '.join(names)}.")
            )
        before = [*entry.after, *(e.page for e in entries if entry.runs and e.provides)]
        after = tuple(dict.fromkeys(name for item in before for name in names[item]))
        notebook = Notebook.read(project.notebooks / entry.notebook)
        for name, model in zip(names[entry.page], _models(entry, models), strict=True):
            if name in pages:
                raise BookError(compose(f"page {name!r} is made twice", path=project.plan))
            pages[name] = _page(entry, name, notebook, after, _Slots(corpus, model, models))
    try:
        order = TopologicalSorter({name: page.after for name, page in pages.items()}).static_order()
        return tuple(pages[name] for name in order)
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise BookError(
            compose(f"pages wait for each other: {circle}", path=project.plan)
        ) from None


def read_plan(path: Path) -> tuple[Entry, ...]:
    """Reads the entries of a plan, as they are written.

    Raises:
        BookError: If there is no plan, it is not YAML, or an entry has a fault.
    """
    return read_yaml(path, _Plan, "no plan of the pages").pages


def _models(entry: Entry, models: Mapping[str, str]) -> tuple[str | None, ...]:
    return tuple(models) if entry.for_each else (None,)


def _names(entry: Entry, models: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(entry.page.replace("{model}", m or "{model}") for m in _models(entry, models))


@dataclass(frozen=True, slots=True)
class _Slots:
    """What the slots of one page stand for."""

    corpus: BookCorpus
    model: str | None
    models: Mapping[str, str]

    def fill(self, value: Any) -> Any:
        """Fills the slots of every string, however deep it lies."""
        if isinstance(value, str):
            return self._filled(value, str)
        if isinstance(value, dict):
            return {key: self.fill(item) for key, item in value.items()}
        return [self.fill(item) for item in value] if isinstance(value, list) else value

    def patterns(self, patterns: Sequence[str]) -> tuple[str, ...]:
        found: list[str] = []
        for pattern in patterns:
            if pattern.startswith(_SPLIT):
                found.extend(self.corpus.files(pattern.removeprefix(_SPLIT)))
            else:
                # A name with brackets stands for itself alone.
                found.append(self._filled(pattern, glob.escape))
        return tuple(dict.fromkeys(found))

    def _filled(self, line: str, write: Callable[[str], str]) -> str:
        contents = self._contents()
        # All at once: what stands in one slot is no slot of its own.
        return _SLOT.sub(
            lambda slot: write(contents[slot[0]]) if slot[0] in contents else slot[0], line
        )

    def _contents(self) -> dict[str, str]:
        contents = {
            "{corpus}": self.corpus.choice,
            "{corpus_name}": self.corpus.name,
            "{training}": self.corpus.training,
        }
        if self.model is not None:
            contents["{model}"] = self.model
            contents["{name}"] = json.loads(self.models[self.model])["name"]
        return contents


def _page(
    entry: Entry, name: str, notebook: Notebook, after: tuple[str, ...], slots: _Slots
) -> Page:
    parameters = slots.fill(entry.parameters)
    notebook.check_parameters(parameters)
    own = entry.inputs_of.get(slots.model, ()) if slots.model is not None else ()
    return Page(
        name=name,
        notebook=notebook,
        title=slots.fill(entry.title),
        parameters=parameters,
        inputs=slots.patterns((*entry.inputs, *own)),
        provides=slots.patterns(entry.provides),
        after=after,
        runs=slots.patterns(_RUNS if entry.runs else ()),
        model=slots.models[slots.model] if slots.model is not None else None,
    )
