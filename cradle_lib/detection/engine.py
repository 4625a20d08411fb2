"""What an engine is: it carries prompts to a model and answers back, and knows no protocol.

Engines are found by name among the entry points of the group ``cradle.engines``: the ones that
ship, and those of other packages.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, Self

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.parsing import Outcome
from cradle_lib.detection.session import Answer, Prediction, Prompt
from cradle_lib.errors import CradleError, EngineError, RegistryError, printable

if TYPE_CHECKING:
    from cradle_lib.detection.model import Model

Emit = Callable[[Prediction], None]
Consent = Callable[[str], bool]
_LONGEST_REASON: Final = 300


class Questions(Protocol):
    """What an engine drives: one question after the other, each made of the answers before it.

    Attributes:
        taken: Predictions of earlier starts that answer questions as they are now.
    """

    taken: list[Prediction]

    @property
    def prompt(self) -> Prompt | None:
        """The next question; ``None`` when all are answered."""

    @property
    def remaining(self) -> int:
        """Questions that are not answered yet."""

    def answer(self, answer: Answer) -> Prediction:
        """Takes the answer to :attr:`prompt` and moves on."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come.

    Attributes:
        done: Questions answered, those of earlier starts included.
        total: Questions of the run.
        stored: Those of ``done`` that were answered before this start.
        spent: Dollars that this start's calls cost, where the service says what they used and
            the model has prices.
    """

    done: int
    total: int
    stored: int
    spent: float = 0.0


def _print_error(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")


@dataclass(frozen=True, slots=True)
class Options:
    """How this machine runs a model: nothing here may change an answer.

    Attributes:
        device: For instance ``cpu`` or ``cuda:1``; ``None`` for a GPU if there is one.
        device_map: How to spread weights over several GPUs, such as ``auto``.
        concurrency: How many dialogues an API engine drives at once, at most.
        batch: How many dialogues the wave engine advances together; ``None`` for as many as
            the free memory allows.
        deadline: Seconds for one call of a service, all in all.
        notice: Takes a sentence that the user should know, such as why a run is slower; by default
            it is written to the standard error stream.
        progress: Called at the start and after every answer.
        consent: Asked at each start, with a sentence that says which text goes where, before the
            text of dialogues leaves the machine; ``None`` to send nothing.
        max_cost: Most dollars for this run, all its starts together; it stops before a call
            that could cost more. It is kept in the record and binds later starts that name no
            other; ``None`` for what is recorded, or no limit.
    """

    device: str | None = None
    device_map: str | None = None
    concurrency: int = 8
    batch: int | None = None
    deadline: float = 120.0
    notice: Callable[[str], None] = _print_error
    progress: Callable[[Progress], None] = lambda _: None
    consent: Consent | None = None
    max_cost: float | None = None


def failure(error: Exception, hide: Callable[[str], str] = str) -> Answer:
    """Makes the failed answer to a question on which a model raised an exception.

    The reason has the exception's type and message, as :func:`short_reason` gives them.
    """
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    return Answer("", Outcome.FAILED, short_reason(said, hide), error=error)


def short_reason(said: str, hide: Callable[[str], str] = str) -> str:
    """Puts a message on one line; ``hide`` removes secrets from it before it is shortened."""
    line = " ".join(said[: 10 * _LONGEST_REASON].split())
    return printable(hide(line)[:_LONGEST_REASON])


def checksum(*files: Path | str) -> str:
    """Gives the first twelve hexadecimal digits of the SHA-256 of files, read one after another."""
    content = b"".join(Path(file).read_bytes() for file in files)
    return hashlib.sha256(content).hexdigest()[:12]


class Engine(ABC):
    """Drives sessions to their end.

    Another package adds an engine by an entry point in the group ``cradle.engines`` that names
    its class.

    Attributes:
        kind: What an answer costs. ``baseline``: code on this machine that answers at once,
            which building the book may run. ``local``: a model that this machine computes.
            ``service``: a model behind an API.
        uses: The decoding settings that it obeys; an entry that sets another is refused.
        needs_weights: Whether an entry must name weights.
        endpoint: The address of the provider, if an entry need not name one.
        version: Declared version of the engine's code, part of the identity of its runs: raise it
            with every change of the code that changes answers. ``None`` until the first such
            change.
        revision: What pins the data that answers depend on, such as weights or a train split, if
            the engine knows better than the registry.
        tokenizer: Whose tokenizer and chat template it uses, if not those of the weights.
        date: Date that its chat template prints; set before the first question if the template
            asks for one.
    """

    kind: ClassVar[Literal["baseline", "local", "service"]] = "local"
    uses: ClassVar[frozenset[str]] = frozenset()
    needs_weights: ClassVar[bool] = False
    endpoint: ClassVar[str] = ""
    version: ClassVar[str | None] = None
    revision: str | None = None
    tokenizer: str | None = None
    date: str | None = None

    @classmethod
    def create(cls, model: Model, corpus: Corpus, options: Options) -> Self:
        """Makes the engine of an entry; heavy things are loaded when the first question comes.

        Args:
            model: An entry of the registry.
            corpus: The corpus of the run; a trained baseline finds its train split beside it.
            options: How this machine runs it.

        Raises:
            EngineError: If the engine can't start: a missing key, file or package.
        """
        return cls()

    def checkpoint_decoding(self) -> dict[str, Any]:
        """Finds the decoding settings that the model's checkpoint adds to those of the entry.

        Raises:
            EngineError: If the model's files can't be read, or ask for what can't be done.
        """
        return {}

    def asks_for_date(self) -> bool:
        """Whether prompts would show another date on another day.

        Raises:
            EngineError: If that can't be found out.
        """
        return False

    @abstractmethod
    def answer_all(self, sessions: Iterable[Questions], emit: Emit) -> None:
        """Asks every session's prompts until all are finished.

        Args:
            sessions: The sessions, which may be made on demand and may be finished.
            emit: Takes each prediction as soon as there is one.

        Raises:
            EngineError: If the model can't be used at all. Any other exception ends the run, too:
                an engine with a loop of its own fails the question that raised it.
        """


class Sequential(Engine):
    """An engine that asks one question after the other."""

    @abstractmethod
    def reply(self, prompt: Prompt) -> Answer:
        """Answers one prompt.

        Raises:
            EngineError: If the model can't be used at all. After any other exception this
                question has failed, and the next one is asked.
        """

    def answer_all(self, sessions: Iterable[Questions], emit: Emit) -> None:
        """Asks turn by turn. A question on which the model raises an exception has failed."""
        for session in sessions:
            while (prompt := session.prompt) is not None:
                started = time.perf_counter()
                try:
                    answer = self.reply(prompt)
                except CradleError:
                    raise
                except Exception as error:  # Whatever a model raises.
                    answer = failure(error)
                emit(session.answer(replace(answer, seconds=time.perf_counter() - started)))


def revision_of(engine: Engine, model: Model) -> str | None:
    """Gives a run's revision: what pins the engine's data, and the declared version of its code.

    For example ``train:0123456789ab code:2``; ``None`` if there is neither.
    """
    parts = [engine.revision or model.revision]
    if engine.version is not None:
        parts.append(f"code:{engine.version}")
    return " ".join(filter(None, parts)) or None


def weights_revision(revision: str | None) -> str | None:
    """Gives the part of a run's revision that pins weights, without train split and version.

    For example ``sha256:01ab`` of ``sha256:01ab train:0123456789ab code:2``; ``None`` if there is
    no such part.
    """
    return re.split(r" ?\b(?:train|code):", revision or "")[0] or None


def code_of(engine: Engine) -> str | None:
    """Gives the checksum of the code of another package's engine, such as ``sha256:0123456789ab``.

    It is over every Python file of the package that its class is in, or of the module alone if that
    is in no package. ``None`` for the engines of this library: they declare their version, and
    tests compare their answers with those of shipped runs.
    """
    kind = type(engine)
    if kind.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return None
    file = Path(inspect.getfile(kind))
    is_packaged = (file.parent / "__init__.py").is_file()
    files = sorted(file.parent.rglob("*.py")) if is_packaged else [file]
    return f"sha256:{checksum(*files)}"


def require_packages(*names: str, extra: str, model: Model) -> None:
    """Checks that packages are installed, without importing them.

    Raises:
        EngineError: If one is missing; the message says what to install.
    """
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise EngineError(
                f"{model.name} needs the package {name}, which is not installed. "
                f"Install it with `{paths.install_command(extra)}`."
            )


def make_engine(model: Model, corpus: Corpus, options: Options) -> Engine:
    """Makes the engine of a model: see :meth:`Engine.create`."""
    return find_engine(model.engine).create(model, corpus, options)


@cache
def find_engine(name: str) -> type[Engine]:
    """Loads the class of an engine by the name of its entry point, such as ``wave``.

    Raises:
        RegistryError: If no installed package has such an entry point, or it can't be loaded.
    """
    entry = _installed().get(name)
    if entry is None:
        raise RegistryError(
            f"no engine {name!r}; there are: {', '.join(sorted(_installed()))}. "
            "After adding an entry point, install its package again."
        )
    try:
        engine: type[Engine] = entry.load()
    except Exception as error:  # Whatever the code of another package raises.
        raise RegistryError(
            f"engine {name!r} ({entry.value}) can't be loaded: {error}. Fix or remove its package"
        ) from error
    return engine


@cache
def _installed() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="cradle.engines")}
