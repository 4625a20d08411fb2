"""Options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Final, TypeVar, get_args

import typer

from cradle_lib import detection, record, strict_yaml
from cradle_lib.cli.console import err
from cradle_lib.errors import CradleError, RegistryError, ScoringError
from cradle_lib.scoring.conventions import Conventions

Model = Annotated[
    str,
    typer.Option(
        "--model",
        help="Id of the model in models.yml, or hf:ORG/NAME, hf:./folder, openai:NAME, "
        "anthropic:NAME.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any other setting, such as temperature=0.7, prompt=append, history=gold, "
        "base_url=http://127.0.0.1:8000/v1, device=cuda:1 or concurrency=16; for a service also "
        "deadline=SECONDS, the limit of one call, and silence=SECONDS, the time without any answer "
        "after which the run stops. May be given several times.",
    ),
]
Convention = Annotated[
    list[str] | None,
    typer.Option(
        help="A choice that the paper leaves open, such as unparsed=none; may be given several "
        "times."
    ),
]
Corpus = Annotated[
    str, typer.Option("--corpus", help="surrogate, hub, or a file in the release's format.")
]
Split = Annotated[str, typer.Option(help="train, dev or test, for a corpus by name.")]
MaxCost = Annotated[
    float | None,
    typer.Option(min=0, help="Highest cost of the run in dollars, over all its starts."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Agree that text is sent to a remote model.")]
Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
Draws = Annotated[int, typer.Option(min=0, help="Bootstrap draws of dialogues.")]
DrawsSeed = Annotated[int, typer.Option(help="Seed of the draws.")]
Sample = Annotated[
    int | None, typer.Option(min=1, help="Only N dialogues, stratified by scenario and timing.")
]
_Choice = TypeVar("_Choice", bound=str)
# Settings of this machine: positive whole numbers, seconds, and text.
_NUMBERS: Final = ("concurrency", "batch")
_SECONDS: Final = ("deadline", "silence")
_TEXTS: Final = ("device", "device_map")


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run from ``--model`` and ``--set``.

    Attributes:
        model: The entry of the registry, with the settings that were given.
        history: Source of the labels in the history: the model, gold or none.
        limit: Number of dialogues to run, from the start of the corpus; ``None`` for all.
        options: Settings of this machine, such as the device.
    """

    model: detection.Model
    history: record.History
    limit: int | None
    options: detection.Options


def run_settings(model: str, given: list[str] | None) -> RunSettings:
    """Reads ``--model`` and ``--set``.

    Raises:
        CradleError: If a model or setting is unknown, or a value is invalid.
    """
    settings, options = split_settings(given)
    history = one_of(settings.pop("history", "self"), get_args(record.History), "history")
    limit = _positive("limit", settings.pop("limit", None))
    return RunSettings(detection.resolve(model, **settings), history, limit, options)


def split_settings(given: list[str] | None) -> tuple[dict[str, Any], detection.Options]:
    """Divides the settings of ``--set`` into those of the model and those of this machine."""
    settings = read_pairs(given, "--set")
    machine: dict[str, Any] = {
        name: _positive(name, settings.pop(name)) for name in _NUMBERS if name in settings
    }
    machine |= {name: _seconds(name, settings.pop(name)) for name in _SECONDS if name in settings}
    machine |= {name: str(settings.pop(name)) for name in _TEXTS if name in settings}
    return settings, detection.Options(**machine, notice=err.print)


def read_pairs(given: list[str] | None, option: str) -> dict[str, Any]:
    """Reads ``name=value`` pairs; values are YAML, or else text."""
    pairs: dict[str, Any] = {}
    for pair in given or ():
        name, equals, value = pair.partition("=")
        if not equals:
            raise RegistryError(f"{option} {pair}: expected name=value")
        try:
            pairs[name] = strict_yaml.load(value)
        except ValueError:
            pairs[name] = value
    return pairs


def _positive(name: str, value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise RegistryError(f"--set {name}={value}: expected a whole number from 1")


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise RegistryError(f"--set {name}={value}: expected a number of seconds above 0")


def parse_conventions(given: list[str] | None) -> Conventions:
    """Reads ``name=value`` pairs into scoring conventions."""
    chosen, known = read_pairs(given, "--convention"), [field.name for field in fields(Conventions)]
    if unknown := [name for name in chosen if name not in known]:
        raise ScoringError(f"no convention {unknown[0]!r}. Give one of {', '.join(known)}.")
    return Conventions(**chosen)


def one_of(name: str, choices: Sequence[_Choice], kind: str) -> _Choice:
    """Checks that a name is one of the choices, and gives it.

    Raises:
        CradleError: If it is not; the message lists the choices.
    """
    for choice in choices:
        if name == choice:
            return choice
    raise CradleError(f"no {kind} {name!r}. Choose one of {', '.join(choices)}.")
