"""How a model is found: by its id in ``models.yml``, or by a spec such as ``hf:ORG/NAME``.

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
from cradle_lib.detection.model import Decoding, Model, is_here
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
        self._checked: dict[str, Model] = {}

    def __getitem__(self, name: str) -> Model:
        """Looks up an entry and checks it."""
        if name not in self._checked:
            entry, place = self._entries[name], f"{paths.shown(self._path)}, model {name}"
            if not isinstance(entry, dict):
                raise RegistryError(f"{place}: expected fields, found {entry!r:.80}")
            try:
                self._checked[name] = Model.model_validate({**entry, "id": name})
            except ValidationError as error:
                raise RegistryError(f"{place}: {faults(error)}") from error
        return self._checked[name]

    def __iter__(self) -> Iterator[str]:
        """Walks over the ids."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Counts the entries."""
        return len(self._entries)

    @property
    def default(self) -> list[Model]:
        """The models of the default book; the other entries are not checked."""
        chosen = [
            name
            for name, entry in self._entries.items()
            if isinstance(entry, dict) and entry.get("default")
        ]
        return [self[name] for name in chosen]

    @property
    def sound(self) -> list[Model]:
        """The models whose entries have no fault."""
        faults = self.faults
        return [self[name] for name in self if name not in faults]

    @property
    def faults(self) -> dict[str, str]:
        """What is wrong, for each entry that has a fault."""
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
    except FileNotFoundError:
        raise RegistryError(f"{paths.shown(path)}: there is no registry of models") from None
    except OSError as error:
        raise RegistryError(f"{paths.shown(path)}: can't be read ({error.strerror})") from None
    except ValueError as error:
        raise RegistryError(f"{paths.shown(path)}: is not YAML ({error})") from error
    if not isinstance(entries, dict):
        raise RegistryError(f"{paths.shown(path)}: expected a mapping of ids to models")
    names = [str(name) for name in entries]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        # Such as `1` and `"1"`, which differ in YAML.
        raise RegistryError(f"{paths.shown(path)}: model {twice[0]!r} stands twice")
    return Registry(dict(zip(names, entries.values(), strict=True)), path)


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


def faults(error: ValidationError) -> str:
    """Says all that is wrong with an entry, field by field; never what was given."""
    found = []
    for fault in error.errors():
        field = ".".join(map(str, fault["loc"]))
        problem = fault["msg"].removeprefix("Value error, ")
        found.append(f"field {field}: {problem}" if field else problem)
    return "; ".join(found)


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
    try:
        return Model.model_validate(fields)
    except ValidationError as error:
        raise RegistryError(f"{model}: {faults(error)}") from error


def spec_options(entry: Model) -> list[str]:
    """Gives the words, from ``--model`` on, by which a command finds an entry again."""
    for scheme in _ENGINES if entry.group == "own" and entry.weights else ():
        if entry.id == id_of(f"{scheme}-{entry.weights}"):
            spec = f"{scheme}:{entry.weights}"
            plain = _fields(spec, None, None, entry.base_url, None)
            given: dict[str, Any] = {"base_url": entry.base_url} if entry.base_url else {}
            if entry.engine != plain["engine"]:
                given["engine"] = entry.engine
            if entry.key is not None and {"variable": entry.key.variable} != plain.get("key"):
                given["key"] = entry.key.variable
            given |= (entry.decoding or Decoding()).model_dump(exclude_defaults=True)
            return ["--model", spec, *set_options(given)]
    return ["--model", entry.id]


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
