"""The engine interface: an engine sends prompts to a model and returns its answers.

Engines do not depend on the protocol. They are found by name among the entry points of the group
``cradle.engines``, which other packages can extend.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Protocol, Self

from cradle_lib import paths
from cradle_lib.arguments import Positive, Range, Seconds, check_fields
from cradle_lib.corpus import Corpus
from cradle_lib.detection.protocol.parsing import Outcome
from cradle_lib.detection.protocol.session import Answer, Prediction, Prompt
from cradle_lib.errors import CradleError, EngineError, RegistryError, printable

if TYPE_CHECKING:
    from cradle_lib.detection.models.model import Model

Emit = Callable[[Prediction], None]
Consent = Callable[[str], bool]
#: End of the message about a run that was stopped.
KEPT: Final = "The answers so far are kept: run the same command again to go on."
_LONGEST_REASON: Final = 300
# The packages of this distribution with engines.
_OWN_PACKAGES: Final = ("cradle_lib", "cradle_engines")


class Questions(Protocol):
    """A sequence of questions to a model, each of which may depend on the earlier answers.

    Attributes:
        taken: Stored predictions that were reused, because their questions have not changed.
    """

    taken: list[Prediction]

    @property
    def prompt(self) -> Prompt | None:
        """The next question; ``None`` when all are answered."""

    @property
    def remaining(self) -> int:
        """Number of unanswered questions."""

    def answer(self, answer: Answer) -> Prediction:
        """Records the answer to :attr:`prompt` and advances to the next question."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run.

    Attributes:
        done: Number of answered questions, including those of earlier starts.
        total: Number of questions of the run.
        stored: Number of questions that were answered before this start.
        spent: Cost of this start's calls in dollars. Calls count only if the service reports
            their usage and the model has prices.
    """

    done: int
    total: int
    stored: int
    spent: float = 0.0


def _print_error(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")


@dataclass(frozen=True, slots=True)
class Options:
    """Execution settings of this machine. None of them may change an answer.

    Attributes:
        device: For instance ``cpu`` or ``cuda:1``; ``None`` for a GPU if there is one.
        device_map: How to spread weights over several GPUs, such as ``auto``.
        concurrency: Maximum number of parallel calls of an API engine, one per dialogue.
        batch: Number of dialogues that the wave engine processes together; ``None`` for as many as
            the free memory allows. If tokens are sampled, rounding can make a rare draw depend on
            it.
        deadline: Timeout of one call of a service in seconds; retries are separate calls. ``None``
            for 120.
        silence: Time without any answer of a service, in seconds, after which the run stops. Until
            then rate limits and overloads only delay it. ``None`` for 300, or 2.5 times the
            deadline if that is longer.
        notice: Called with messages for the user, such as why a run is slower; by default they
            are written to the standard error stream.
        progress: Called at the start and after every answer.
        consent: Called at each start, before the text of dialogues leaves the machine, with a
            sentence that names the text and its destination; ``None`` to send nothing.
        max_cost: Maximum cost of the run in dollars, over all its starts. The run stops before a
            call that could exceed it. The limit is recorded and applies to later starts that set
            no other; ``None`` for the recorded limit, or no limit.
    """

    device: str | None = None
    device_map: str | None = None
    concurrency: Positive = 8
    batch: Positive | None = None
    deadline: Seconds | None = None
    silence: Seconds | None = None
    notice: Callable[[str], None] = _print_error
    progress: Callable[[Progress], None] = lambda _: None
    consent: Consent | None = None
    max_cost: Annotated[float, Range(0)] | None = None

    def __post_init__(self) -> None:
        """Rejects values of a wrong type or out of range."""
        check_fields(self)


def failure(error: Exception, hide: Callable[[str], str] = str) -> Answer:
    """Makes the ``failed`` answer to a question on which a model raised an exception.

    Its reason is the exception's type and message, shortened by :func:`short_reason`.
    """
    message = f"{type(error).__name__}: {error}".rstrip(": ")
    return Answer("", Outcome.FAILED, short_reason(message, hide), error=error)


def short_reason(message: str, hide: Callable[[str], str] = str) -> str:
    """Shortens a message to one line, after ``hide`` has removed secrets from it."""
    line = " ".join(message[: 10 * _LONGEST_REASON].split())
    return printable(hide(line)[:_LONGEST_REASON])


def checksum(*files: Path | str) -> str:
    """Gives the first twelve hexadecimal digits of the SHA-256 of the concatenated files."""
    content = b"".join(Path(file).read_bytes() for file in files)
    return hashlib.sha256(content).hexdigest()[:12]


class Engine(ABC):
    """Asks a model all questions of the given sessions.

    Another package adds an engine by an entry point in the group ``cradle.engines`` that names
    its class.

    Attributes:
        kind: Kind of system. ``baseline``: fast code on this machine, which may also run while the
            book is built. ``local``: a model computed on this machine. ``service``: a model behind
            an API.
        uses: The decoding settings that it supports; an entry that sets another is refused.
        needs_weights: Whether an entry must name weights.
        adds_switches: Whether :meth:`added_switches` is overridden.
        endpoint: The provider's address, for entries that name no other.
        version: Declared version of the engine's code, part of the identity of its runs. Raise it
            with every change of the code that changes answers. ``None`` until the first such
            change.
        revision: Commit or checksum of the data that answers depend on, such as weights or a train
            split; ``None`` to use the registry's.
        tokenizer: Source of the tokenizer and chat template, if it is not the weights.
        code: Checksum of code that answers depend on, if :func:`code_of` can't compute it.
        source: Text of that code, for the record.
        date: Date that its chat template prints; set before the first question if the template
            prints one.
        chat: Variables of its chat template; set before the first question if it has any.
        fallback: Why another engine gives the answers; set before the first answer. A run that
            is resumed sets it to the reason of the earlier start, so that the same engine goes on.
        on_lost_call: Set before the first question. The engine calls it with a failed prediction
            for each call that got no answer but may be charged, before it repeats the call or ends.
            The question stays open.
    """

    kind: ClassVar[Literal["baseline", "local", "service"]] = "local"
    uses: ClassVar[frozenset[str]] = frozenset()
    needs_weights: ClassVar[bool] = False
    adds_switches: ClassVar[bool] = False
    endpoint: ClassVar[str] = ""
    version: ClassVar[str | None] = None
    revision: str | None = None
    tokenizer: str | None = None
    code: str | None = None
    source: str | None = None
    date: str | None = None
    chat: Mapping[str, Any] | None = None
    fallback: str | None = None
    on_lost_call: Emit = staticmethod(lambda _: None)

    @classmethod
    def create(cls, model: Model, corpus: Corpus, options: Options) -> Self:
        """Makes the engine of an entry; weights are loaded at the first question.

        Args:
            model: An entry of the registry.
            corpus: The corpus of the run; a trained baseline learns from its train split.
            options: Execution settings.

        Raises:
            EngineError: If the engine can't start: a missing key, file or package.
        """
        return cls()

    @classmethod
    def pin(cls, model: Model, corpus: Corpus) -> str:
        """Finds :attr:`revision` as far as this needs no package, key or network.

        Stored runs are compared with it before they are read. The engines of baselines need not
        override it.

        Args:
            model: An entry of the registry.
            corpus: The corpus of the run.

        Returns:
            The revision, with ``*`` for each part that is not known; empty if there is none.
        """
        return model.revision or ""

    def checkpoint_decoding(self) -> dict[str, Any]:
        """Finds the decoding settings that the model's checkpoint adds to those of the entry.

        Raises:
            EngineError: If the model's files can't be read, or have an unsupported setting.
        """
        return {}

    def asks_for_date(self) -> bool:
        """Whether prompts can contain the current date.

        Raises:
            EngineError: If the chat template can't be read.
        """
        return False

    def added_switches(self) -> dict[str, bool]:
        """Finds the switches of the chat template that are set although the entry does not.

        Raises:
            EngineError: If the chat template can't be read.
        """
        return {}

    def limit_calls(self, calls: int) -> None:  # noqa: B027 - need not be overridden
        """Limits the calls in flight; called before the first question if a run has a cost limit.

        By default nothing is done: only ``calls`` sessions then have a prompt at the same time, and
        :meth:`answer_all` is called again for the others. An engine that makes parallel calls is
        faster if it keeps the limit itself.
        """

    def stop(self, why: str) -> None:  # noqa: B027 - need not be overridden
        """Ends the run, because a further call could exceed the cost limit.

        Called from ``emit`` or :attr:`on_lost_call`; from then on no session has a prompt. An
        engine that makes parallel calls, or repeats calls, begins no further call and completes
        those in flight. By default nothing is done.
        """

    @abstractmethod
    def answer_all(self, sessions: Iterable[Questions], emit: Emit) -> None:
        """Asks every session's prompts until none has one.

        Args:
            sessions: The sessions; may be a generator, and may contain finished sessions. With a
                cost limit, a session without a prompt may get one after other answers.
            emit: Called with each prediction as soon as it is available, from any thread.

        Raises:
            EngineError: If the model can't be used at all. Any other exception also ends the run:
                catch exceptions of single questions and answer with :func:`failure`.
        """


class Sequential(Engine):
    """An engine that asks one question after the other."""

    def prepare(self) -> None:
        """Does one-time work, such as loading weights, which does not count as time of an answer.

        Called before each question, so that a finished run needs none of it; exceptions as for
        :meth:`reply`.
        """

    @abstractmethod
    def reply(self, prompt: Prompt) -> Answer:
        """Answers one prompt.

        Raises:
            EngineError: If the model can't be used at all. Any other exception makes this
                question ``failed``, and the next one is asked.
        """

    def answer_all(self, sessions: Iterable[Questions], emit: Emit) -> None:
        """Asks turn by turn. A question on which the model raises an exception is ``failed``."""
        for session in sessions:
            while (prompt := session.prompt) is not None:
                started = time.perf_counter()
                try:
                    self.prepare()
                    started = time.perf_counter()
                    answer = self.reply(prompt)
                    if not isinstance(answer, Answer):
                        raise TypeError(f"reply gave {type(answer).__name__}, expected an Answer")
                except CradleError:
                    raise
                except Exception as error:  # A model may raise any exception.
                    answer = failure(error)
                emit(session.answer(replace(answer, seconds=time.perf_counter() - started)))


def revision_of(engine: Engine, model: Model) -> str | None:
    """Gives a run's revision: the pin of the engine's data and the declared version of its code.

    For example ``train:0123456789ab code:2``; ``None`` if there is neither.
    """
    parts = [engine.revision or model.revision]
    if engine.version is not None:
        parts.append(f"code:{engine.version}")
    return " ".join(filter(None, parts)) or None


def weights_revision(revision: str | None) -> str | None:
    """Gives the part of a run's revision that pins the weights.

    For example ``sha256:01ab`` of ``sha256:01ab train:0123456789ab code:2``; ``None`` if there is
    no such part.
    """
    return re.split(r" ?\b(?:train|code):", revision or "")[0] or None


def code_of(kind: type[Engine]) -> str | None:
    """Gives the checksum of the code of another package's engine, such as ``sha256:0123456789ab``.

    It covers every Python file in the top package of the class, or only its module if there is no
    package. ``None`` for the engines of this library: they declare their version, and tests
    compare their answers with those of shipped runs.
    """
    if kind.__module__.partition(".")[0] in _OWN_PACKAGES:
        return None
    file = Path(inspect.getfile(kind))
    packages = list(takewhile(lambda folder: (folder / "__init__.py").is_file(), file.parents))
    files = sorted(packages[-1].rglob("*.py")) if packages else [file]
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
    """Makes the engine that a model's entry names.

    Raises:
        EngineError: If it can't start.
    """
    try:
        return find_engine(model.engine).create(model, corpus, options)
    except CradleError:
        raise
    except Exception as error:  # Code of another package may raise any exception.
        reason = failure(error).reason
        raise EngineError(
            f"{model.name}: the engine {model.engine} can't be made ({reason}). Correct the entry, "
            "or the engine."
        ) from error


def find_engine(name: str) -> type[Engine]:
    """Loads the class of an engine by the name of its entry point, such as ``wave``.

    Raises:
        RegistryError: If no installed package has such an entry point, or it can't be loaded.
    """
    installed = _installed(tuple(sys.path))
    entry = installed.get(name)
    if entry is None:
        raise RegistryError(
            f"no engine {name!r}; there are: {', '.join(sorted(installed))}. "
            "After adding an entry point, install its package again."
        )
    try:
        return _loaded(entry)
    except Exception as error:  # Code of another package may raise any exception.
        raise RegistryError(
            f"engine {name!r} ({entry.value}) can't be loaded: {error}. Fix or remove its package"
        ) from error


@cache
def _loaded(entry: EntryPoint) -> type[Engine]:
    engine: type[Engine] = entry.load()
    return engine


# Cached, because it reads the metadata of every package on the import path.
@cache
def _installed(path: tuple[str, ...]) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="cradle.engines")}
