"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Final, TypeVar, get_args

import typer

from cradle_lib import detection, record, strict_yaml
from cradle_lib.arguments import Positive, misfit, require_known
from cradle_lib.cli.console import err
from cradle_lib.errors import RegistryError
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
    str, typer.Option("--corpus", help="surrogate, hub, probes, or a file in the release's format.")
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
# Settings of this machine.
_MACHINE: Final = ("concurrency", "batch", "deadline", "silence", "device", "device_map")


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
    limit = settings.pop("limit", None)
    if problem := misfit("limit", limit, Positive | None):
        raise RegistryError(problem)
    entry = detection.resolve(model, notice=options.notice, **settings)
    return RunSettings(entry, history, limit, options)


def split_settings(given: list[str] | None) -> tuple[dict[str, Any], detection.Options]:
    """Divides the settings of ``--set`` into those of the model and those of this machine."""
    settings = read_pairs(given, "--set")
    machine = {name: settings.pop(name) for name in _MACHINE if name in settings}
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


def parse_conventions(given: list[str] | None) -> Conventions:
    """Reads ``name=value`` pairs into scoring conventions."""
    chosen, known = read_pairs(given, "--convention"), [field.name for field in fields(Conventions)]
    for name in chosen:
        require_known("convention", name, known)
    return Conventions(**chosen)


def one_of(name: str, choices: Sequence[_Choice], kind: str) -> _Choice:
    """Checks that a name is one of the choices, and gives it.

    Raises:
        ArgumentError: If it is not; the message lists the choices.
    """
    require_known(kind, name, choices)
    return choices[choices.index(name)]
