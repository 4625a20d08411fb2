"""Options that several commands share."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, get_args

import typer

from cradle_lib import bounded_yaml
from cradle_lib.detection import Model, resolve
from cradle_lib.errors import CradleError, RegistryError, ScoringError
from cradle_lib.record import History
from cradle_lib.scoring.core.conventions import Conventions

ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        help="Id of the model in models.yml, or hf:ORG/NAME, hf:./folder, openai:NAME, "
        "anthropic:NAME.",
    ),
]
EngineOption = Annotated[
    str | None, typer.Option(help="What drives the model: for weights, wave or reference.")
]
BaseUrlOption = Annotated[
    str | None, typer.Option(help="Address of a service, if it is not the provider's own.")
]
KeyOption = Annotated[
    str | None, typer.Option(help="Environment variable that holds the service's key.")
]
AdapterOption = Annotated[
    str | None, typer.Option(help="Folder of an adapter that is merged into hf: weights.")
]
PromptOption = Annotated[
    str | None, typer.Option(help="Prompt template, such as append, in place of the model's own.")
]
ConventionOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A choice that the paper leaves open, such as unparsed=none; may be given several "
        "times."
    ),
]
DecodingOption = Annotated[
    list[str] | None,
    typer.Option(help="A decoding setting, such as temperature=0.7; may be given several times."),
]
CorpusOption = Annotated[
    str, typer.Option("--corpus", help="surrogate, hub, or a file in the release's format.")
]
SplitOption = Annotated[str, typer.Option(help="train, dev or test, for a corpus by name.")]
HistoryOption = Annotated[
    str, typer.Option(help="Whose tags the history shows: self (the paper's), gold, none.")
]
DeviceOption = Annotated[str | None, typer.Option(help="For instance cpu or cuda:1.")]
MaxCostOption = Annotated[
    float | None,
    typer.Option(min=0, help="Stop before this run, all starts together, costs more dollars."),
]
YesOption = Annotated[
    bool, typer.Option("--yes", help="Agree that text is sent to a remote model.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
LimitOption = Annotated[int | None, typer.Option(min=1, help="Only the first N dialogues.")]
SampleOption = Annotated[
    int | None, typer.Option(min=1, help="Only N dialogues, stratified by scenario and timing.")
]


def choose_model(
    model: str,
    engine: str | None,
    base_url: str | None,
    key: str | None,
    decoding: list[str] | None,
    **more: str | None,
) -> Model:
    """Finds the model that a command is about, with the settings that it was given.

    Raises:
        CradleError: If there is no such model, or a setting does not fit it.
    """
    settings = {**more, **decoding_settings(decoding)}
    return resolve(model, engine=engine, base_url=base_url, key=key, **settings)


def decoding_settings(given: list[str] | None) -> dict[str, Any]:
    """Reads ``name=value`` pairs into decoding settings.

    Raises:
        CradleError: If one is no such pair.
    """
    settings: dict[str, Any] = {}
    for setting in given or ():
        name, equals, value = setting.partition("=")
        if not equals:
            raise RegistryError(f"--decoding {setting}: expected name=value")
        try:
            settings[name] = bounded_yaml.load(value)
        except ValueError:
            settings[name] = value
    return settings


def parse_conventions(given: list[str] | None) -> Conventions:
    """Reads ``name=value`` pairs into scoring conventions.

    Raises:
        CradleError: If there is no such convention, or it can't have the value.
    """
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


def parse_history(name: str) -> History:
    """Reads whose tags the history shows.

    Raises:
        CradleError: If there is no such choice.
    """
    for history in get_args(History):
        if name == history:
            return history  # type: ignore[no-any-return]  # get_args forgets what it holds
    raise CradleError(f"no history {name!r}. Choose one of {', '.join(get_args(History))}.")
