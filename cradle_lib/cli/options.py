"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any, TypeVar, get_args

import typer

from cradle_lib import bounded_yaml, detection, record
from cradle_lib.errors import CradleError, RegistryError, ScoringError
from cradle_lib.scoring.core.conventions import Conventions

Model = Annotated[
    str,
    typer.Option(
        "--model",
        help="Id of the model in models.yml, or hf:ORG/NAME, hf:./folder, openai:NAME, "
        "anthropic:NAME.",
    ),
]
Engine = Annotated[
    str | None, typer.Option(help="What drives the model: for weights, wave or reference.")
]
BaseUrl = Annotated[
    str | None, typer.Option(help="Address of a service, if it is not the provider's own.")
]
Key = Annotated[str | None, typer.Option(help="Environment variable that holds the service's key.")]
Adapter = Annotated[
    str | None, typer.Option(help="Folder of an adapter that is merged into hf: weights.")
]
Prompt = Annotated[
    str | None, typer.Option(help="Prompt template, such as append, in place of the model's own.")
]
Convention = Annotated[
    list[str] | None,
    typer.Option(
        help="A choice that the paper leaves open, such as unparsed=none; may be given several "
        "times."
    ),
]
Decoding = Annotated[
    list[str] | None,
    typer.Option(help="A decoding setting, such as temperature=0.7; may be given several times."),
]
Corpus = Annotated[
    str, typer.Option("--corpus", help="surrogate, hub, or a file in the release's format.")
]
Split = Annotated[str, typer.Option(help="train, dev or test, for a corpus by name.")]
History = Annotated[
    str, typer.Option(help="Whose tags the history shows: self (the paper's), gold, none.")
]
Device = Annotated[str | None, typer.Option(help="For instance cpu or cuda:1.")]
MaxCost = Annotated[
    float | None,
    typer.Option(min=0, help="Stop before this run, all starts together, costs more dollars."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Agree that text is sent to a remote model.")]
Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
Draws = Annotated[int, typer.Option(min=0, help="Bootstrap draws of dialogues.")]
DrawsSeed = Annotated[int, typer.Option(help="Their seed.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N dialogues.")]
Sample = Annotated[
    int | None, typer.Option(min=1, help="Only N dialogues, stratified by scenario and timing.")
]
Cluster = Annotated[
    str | None,
    typer.Option(help="slurm: as tasks of this cluster. local: as processes of this machine."),
]
Shards = Annotated[
    int | None, typer.Option(min=1, help="With --cluster: into how many tasks the run is divided.")
]
Sbatch = Annotated[
    list[str] | None,
    typer.Option(
        help="With --cluster: what each task needs, as an option of sbatch such as gres=gpu:1, "
        "partition=gpu, time=8:00:00 or mem=64G; may be given several times."
    ),
]
_Choice = TypeVar("_Choice", bound=str)


def choose_model(
    model: str,
    engine: str | None,
    base_url: str | None,
    key: str | None,
    decoding: list[str] | None,
    **more: str | None,
) -> detection.Model:
    """Finds the model that a command is about, with the settings that it was given."""
    settings = {**more, **decoding_settings(decoding)}
    return detection.resolve(model, engine=engine, base_url=base_url, key=key, **settings)


def decoding_settings(given: list[str] | None) -> dict[str, Any]:
    """Reads ``name=value`` pairs into decoding settings."""
    settings: dict[str, Any] = {}
    for setting in given or ():
        name, equals, value = setting.partition("=")
        if not equals:
            raise RegistryError(f"--decoding {setting}: expected name=value")
        try:
            settings[name] = bounded_yaml.load(value)
        except bounded_yaml.AmbiguousError as error:
            raise RegistryError(f"--decoding {setting}: {error}") from None
        except ValueError:
            settings[name] = value
    return settings


def parse_conventions(given: list[str] | None) -> Conventions:
    """Reads ``name=value`` pairs into scoring conventions."""
    known = {field.name: field.type for field in fields(Conventions)}
    chosen: dict[str, Any] = {}
    for pair in given or ():
        name, _, value = pair.partition("=")
        if name not in known:
            raise ScoringError(
                f"no convention {pair!r}. Give name=value with one of {', '.join(known)}."
            )
        try:
            chosen[name] = float(value) if known[name] == "float" else value
        except ValueError:
            raise ScoringError(f"{name} is {value!r}. It must lie between 0 and 1.") from None
    return Conventions(**chosen)


def parse_history(name: str) -> record.History:
    """Reads whose tags the history shows."""
    return one_of(name, get_args(record.History), "history")


def one_of(name: str, choices: Sequence[_Choice], kind: str) -> _Choice:
    """Finds a choice by its name, or says which there are."""
    for choice in choices:
        if name == choice:
            return choice
    raise CradleError(f"no {kind} {name!r}. Choose one of {', '.join(choices)}.")
