"""Finds a model by its id in ``models.yml``, or by a spec such as ``hf:ORG/NAME``.

An entry is checked when it is asked for, so that a mistake in one stops only what needs it. A spec
becomes an entry like any other, with the same journal, identity and consent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from cradle_lib import paths, strict_yaml
from cradle_lib.detection.baselines.function import id_of
from cradle_lib.detection.model import Decoding, Model, faults, is_here
from cradle_lib.errors import RegistryError

_ENGINES: Final = {"hf": "wave", "openai": "openai", "anthropic": "anthropic"}
_KEYS: Final = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_FORMS: Final = "hf:ORG/NAME, hf:./folder, openai:NAME or anthropic:NAME"


class Registry(Mapping[str, Model]):
    """The models by id, in the file's order.

    An entry is checked when it is looked up, and then raises a :class:`RegistryError` that
    names all its faults.

    Args:
        entries: Fields of each entry, as they were read.
        path: Where they were read, for messages.
    """

    def __init__(self, entries: Mapping[str, object], path: Path = paths.REGISTRY) -> None:
        self._entries, self._path = entries, path

    def __getitem__(self, name: str) -> Model:
        """Looks up an entry and checks it."""
        entry, place = self._entries[name], f"{paths.shown(self._path)}, model {name}"
        if not isinstance(entry, dict):
            raise RegistryError(f"{place}: expected fields, found {entry!r:.80}")
        return _checked({**entry, "id": name}, place)

    def __iter__(self) -> Iterator[str]:
        """Walks over the ids."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Counts the entries."""
        return len(self._entries)

    @property
    def default(self) -> list[Model]:
        """The models of the default book; the other entries are not checked."""
        entries = self._entries.items()
        return [self[name] for name, e in entries if isinstance(e, dict) and e.get("default")]

    @property
    def sound(self) -> list[Model]:
        """The models whose entries have no fault."""
        faults = self.faults
        return [self[name] for name in self if name not in faults]

    @property
    def faults(self) -> dict[str, str]:
        """The faults of each entry that has some."""
        found = {}
        for name in self:
            try:
                self[name]
            except RegistryError as error:
                found[name] = str(error)
        return found


def load_registry(path: Path = paths.REGISTRY) -> Registry:
    """Reads the registry.

    Args:
        path: A YAML file: one mapping of ids to entries.

    Returns:
        The registry; its entries are checked when they are looked up.

    Raises:
        RegistryError: If the file is missing, or is not YAML with a mapping.
    """
    try:
        entries = strict_yaml.read(path)
    except OSError as error:
        raise RegistryError(
            f"{paths.shown(path)}: the registry of models can't be read ({error.strerror})"
        ) from None
    except ValueError as error:
        raise RegistryError(f"{paths.shown(path)}: is not YAML ({error})") from error
    if not isinstance(entries, dict):
        raise RegistryError(f"{paths.shown(path)}: expected a mapping of ids to models")
    named = {str(name): entry for name, entry in entries.items()}
    if len(named) < len(entries):
        # Such as `1` and `"1"`, which differ in YAML.
        raise RegistryError(f"{paths.shown(path)}: two models have the same id")
    return Registry(named, path)


def find_model(name: str, registry: Mapping[str, Model]) -> Model:
    """Looks up a model by id.

    Raises:
        RegistryError: If there is none, where the message suggests the nearest; or its entry
            has faults, where it names all of them.
    """
    if name in registry:
        return registry[name]
    near = get_close_matches(name, registry, n=1)
    advice = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(registry)}."
    raise RegistryError(f"no model {name!r} in the registry. {advice}")


def _checked(fields: dict[str, Any], place: str) -> Model:
    try:
        return Model.model_validate(fields)
    except ValidationError as error:
        raise RegistryError(f"{place}: {faults(error)}") from error


def resolve(
    model: str | Model,
    registry: Mapping[str, Model] | None = None,
    /,
    *,
    name: str | None = None,
    engine: str | None = None,
    base_url: str | None = None,
    key: str | None = None,
    adapter: str | None = None,
    prompt: str | None = None,
    **decoding: Any,
) -> Model:
    """Finds the entry that a name or a spec stands for.

    Args:
        model: An entry, its id in the registry, or a spec: ``hf:`` for weights in a folder or
            on the Hub, ``openai:`` and ``anthropic:`` for a model behind an API.
        registry: The registry; by default the project's own.
        name: What pages call a spec's model.
        engine: What drives it instead of the spec's own engine: ``reference`` for ``hf:``.
        base_url: Address of a service, if it is not the provider's own.
        key: Environment variable that holds the service's key; by default the provider's, and
            none for an address on this machine or network.
        adapter: Folder of an adapter to merge into the weights of an ``hf:`` spec.
        prompt: Name of the prompt template, if it is not the entry's own.
        **decoding: Settings of :class:`~cradle_lib.detection.model.Decoding`.

    Returns:
        The entry. Settings that are given replace those of an entry of the registry.

    Raises:
        RegistryError: If there is no such entry, a spec can't be read, or a setting does not
            fit the engine.
    """
    if isinstance(model, str) and ":" in model:
        fields = _fields(model, name, engine, base_url, key)
    else:
        entry = find_model(model, registry or load_registry()) if isinstance(model, str) else model
        changed: dict[str, Any] = {"engine": engine, "base_url": base_url, "name": name}
        changed["key"] = None if key is None else {"variable": key}
        given = {field: value for field, value in changed.items() if value is not None}
        fields = entry.model_dump() | given
    if adapter is not None:
        if not str(model).startswith("hf:"):
            raise RegistryError(f"{model}: an adapter goes with weights: hf:BASE")
        fields["id"] = id_of(f"{fields['id']}-{Path(str(adapter)).name}")
        fields["weights"] = f"{fields['weights']} + {adapter}"
    fields |= {} if prompt is None else {"prompt": prompt}
    if wrong := sorted(decoding.keys() - Decoding.model_fields.keys()):
        raise RegistryError(
            f"{model}: no setting {', '.join(wrong)}. "
            f"There are: {', '.join(Decoding.model_fields)}."
        )
    settings = {setting: value for setting, value in decoding.items() if value is not None}
    if settings:
        fields["decoding"] = (fields.get("decoding") or {}) | settings
    return _checked(fields, str(model))


def set_options(settings: Mapping[str, Any]) -> list[str]:
    """Writes settings as options of a command: ``--set name=value`` for each."""
    words = []
    for name, value in settings.items():
        words += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return words


def _fields(
    spec: str, name: str | None, engine: str | None, base_url: str | None, key: str | None
) -> dict[str, Any]:
    scheme, _, weights = spec.partition(":")
    if scheme not in _ENGINES or not weights.strip() or not id_of(weights):
        raise RegistryError(f"no model {spec!r}. Expected {_FORMS}, or an id in models.yml.")
    fields: dict[str, Any] = {
        "id": id_of(f"{scheme}-{weights}"),
        "name": name or weights,
        "group": "own",
        "engine": engine or _ENGINES[scheme],
        "weights": weights,
        "decoding": {},
    }
    if scheme == "hf":
        if base_url or key:
            raise RegistryError(f"{spec}: weights of one's own have no base_url and no key")
        return fields
    fields["base_url"] = base_url
    fields["remote"] = base_url is None or not is_here(base_url)
    if key or fields["remote"]:
        fields["key"] = {"variable": key or _KEYS[scheme]}
    return fields
