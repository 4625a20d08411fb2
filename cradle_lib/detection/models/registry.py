"""Finds a model by its id in ``models.yml``, or by a spec such as ``hf:ORG/NAME``.

A spec is converted to an entry, which then has a journal, an identity and consent like any other.
If the registry has its weights, that is the registry's entry with its settings. The spec of an
adapter alone is first completed with its base.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from cradle_lib import paths, strict_yaml
from cradle_lib.arguments import checked
from cradle_lib.detection.baselines.function import Function, id_of
from cradle_lib.detection.models.adapters import with_base
from cradle_lib.detection.models.addresses import is_local_address
from cradle_lib.detection.models.model import Model
from cradle_lib.errors import EngineError, RegistryError
from cradle_lib.validation import faults

_ENGINES: Final = {"hf": "wave", "openai": "openai", "anthropic": "anthropic"}
_KEYS: Final = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_FORMS: Final = "hf:ORG/NAME, hf:./folder, openai:NAME or anthropic:NAME"


def load_registry(path: Path = paths.REGISTRY) -> dict[str, Model]:
    """Reads the registry.

    Args:
        path: A YAML file: one mapping of ids to entries.

    Returns:
        The models by id, in the file's order.

    Raises:
        RegistryError: If the file is missing or is not YAML with a mapping, or if entries are
            invalid; the message lists all their errors.
    """
    try:
        entries = strict_yaml.read(path)
    except (OSError, ValueError) as error:
        raise RegistryError(f"{paths.shown(path)}: can't be read as YAML ({error})") from error
    if not isinstance(entries, dict):
        raise RegistryError(f"{paths.shown(path)}: expected a mapping of ids to models")
    models, problems = {}, []
    for name, entry in ((str(key), value) for key, value in entries.items()):
        if name in models:
            problems.append(f"model `{name}` appears twice")
            continue
        if isinstance(entry, dict):
            entry = {"id": name, **entry}
            if entry["id"] != name:
                problems.append(f"model `{name}`: its `id` must be its key, {name}")
                continue
        try:
            models[name] = Model.model_validate(entry)
        except ValidationError as error:
            problems.append(f"model `{name}`: {faults(error, Model)}")
    if problems:
        raise RegistryError(f"{paths.shown(path)}, {'. '.join(problems)}")
    return models


def find_model(name: str, registry: Mapping[str, Model]) -> Model:
    """Looks up a model by id.

    Raises:
        RegistryError: If there is none; the message suggests the most similar id.
    """
    if name in registry:
        return registry[name]
    near = get_close_matches(name, registry, n=1)
    advice = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(registry)}."
    raise RegistryError(f"no model {name!r} in the registry. {advice}")


@checked
def resolve(
    model: str | Model,
    registry: Mapping[str, Model] | None = None,
    /,
    *,
    name: str | None = None,
    engine: str | None = None,
    trained_on: str | None = None,
    base_url: str | None = None,
    key: str | None = None,
    prompt: str | None = None,
    neutralise: bool | None = None,
    notice: Callable[[str], None] = lambda _: None,
    **decoding: Any,
) -> Model:
    """Finds the entry of an id, or makes the entry of a spec.

    Args:
        model: An entry, its id in the registry, or a spec: ``hf:`` for weights in a folder or
            on the Hub (``hf:BASE + ADAPTER`` with an adapter; ``hf:ADAPTER`` with the base that
            its configuration names), ``openai:`` and ``anthropic:`` for a model behind an API.
        registry: The registry; by default the project's own.
        name: Display name of a spec's model.
        engine: Engine to use instead of the spec's default, such as ``reference`` for ``hf:``.
        trained_on: Name of the base in an adapter's configuration, if it differs although both are
            the same model.
        base_url: Address of a service, if it is not the provider's own.
        key: Environment variable with the service's key; by default the provider's, and none for
            an address on this machine or network.
        prompt: Name of the prompt template, if it is not the entry's own.
        neutralise: Whether turns are neutralised, if not as in the entry.
        notice: Called with a sentence if a spec's weights are in the registry, so that the settings
            of that entry are used, and if the base of an adapter was added.
        **decoding: Settings of :class:`~cradle_lib.detection.models.model.Decoding`.

    Returns:
        The entry. Settings that are given replace those of an entry of the registry, one by one.

    Raises:
        RegistryError: If there is no such entry, a spec can't be read, the base that an adapter
            names can't be used, or a setting does not fit the engine.
    """
    given: dict[str, Any] = {"name": name, "engine": engine, "base_url": base_url, "prompt": prompt}
    given |= {"neutralise": neutralise, "trained_on": trained_on}
    given["key"] = None if key is None else {"variable": key}
    if isinstance(model, Model):
        entry: Model | None = model
    else:
        registry = registry or load_registry()
        entry = _registered(model, registry, base_url)
        if entry is None and model.startswith("hf:"):
            model = with_base(model, notice)
            entry = _registered(model, registry, base_url)
    fields = _read_spec(str(model), base_url) if entry is None else entry.model_dump()
    fields |= {field: value for field, value in given.items() if value is not None}
    settings = {setting: value for setting, value in decoding.items() if value is not None}
    if settings:
        fields["decoding"] = (fields.get("decoding") or {}) | settings
    try:
        made = Model.model_validate(fields)
    except ValidationError as error:
        raise RegistryError(f"{model}: {faults(error, Model)}") from None
    if entry is not None and model not in (entry, entry.id):
        used = {"engine": made.engine, "prompt": made.prompt}
        used |= made.decoding.settings if made.decoding else {}
        listed = ", ".join(f"{setting}={value}" for setting, value in used.items())
        notice(
            f"{model} is {made.id} in models.yml, so the settings of that entry are used: "
            f"{listed}. `--set NAME=VALUE` changes one."
        )
    return made


def _registered(model: str, registry: Mapping[str, Model], base_url: str | None) -> Model | None:
    """Finds the entry of an id, or the first one with the weights of a spec; ``None`` if none has.

    A service's entry must also have the spec's address; but if it pins no weights, any other
    address on this machine or network is a server for them too.
    """
    scheme, colon, weights = model.partition(":")
    if not colon:
        return find_model(model, registry)
    wanted = _places(weights)
    for entry in registry.values():
        if entry.weights is None or _places(entry.weights) != wanted:
            continue
        if scheme == "hf" and entry.kind == "local":
            return entry
        addresses = (base_url or "", entry.base_url or "")
        local = entry.revision is None and all(map(is_local_address, addresses))
        if entry.engine == _ENGINES.get(scheme) and (local or base_url == entry.base_url):
            return entry
    return None


def _places(weights: str) -> list[str]:
    """Gives the base and adapter in ``weights`` in one spelling: a path, or lower case."""
    parts = [part.strip() for part in weights.split(" + ")]
    # The Hub ignores case. Unlike `Path.is_dir`, `isdir` accepts a text of any length.
    return [os.path.abspath(part) if os.path.isdir(part) else part.lower() for part in parts]


def spec_of(entry: Model) -> str | None:
    """Gives the spec of a model without an entry in the registry; ``None`` for a function."""
    if entry.group != "own" or entry.weights is None:
        return None
    schemes = {engine: scheme for scheme, engine in _ENGINES.items()}
    return f"{schemes.get(entry.engine, 'hf')}:{entry.weights}"


def function_entry(function: Function) -> Model:
    """Makes the entry of a function, with an id that the registry does not have.

    Raises:
        EngineError: If its name can't be shown on pages.
    """
    fields = {"name": function.name, "group": "own", "engine": "function"}
    try:
        return Model.model_validate({"id": own_id(function.name), **fields})
    except ValidationError as error:
        raise EngineError(f"{faults(error, Model, quoted=True)}. Give another `name=`.") from None


def own_id(name: str) -> str:
    """Gives the id of a user's model without an entry: its name as an id, never one with an entry.

    If the registry has the id, it begins with ``own-``. Empty if the name has no usable character.
    """
    registry, found = load_registry(), id_of(name)
    while found in registry:
        found = f"own-{found}"
    return found


def _read_spec(spec: str, base_url: str | None) -> dict[str, Any]:
    """Gives the fields of a spec's entry; ``base_url`` decides whether the model is remote."""
    scheme, _, weights = spec.partition(":")
    if scheme not in _ENGINES or not weights.strip() or not id_of(weights):
        raise RegistryError(f"no model {spec!r}. Expected {_FORMS}, or an id in models.yml.")
    remote = scheme in _KEYS and not is_local_address(base_url or "")
    return {
        "id": own_id(f"{scheme}-{weights}"),
        "name": weights,
        "group": "own",
        "engine": _ENGINES[scheme],
        "weights": weights,
        "decoding": {},
        "remote": remote,
        "key": {"variable": _KEYS[scheme]} if remote else None,
    }
