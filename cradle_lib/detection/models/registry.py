"""The registry of models: how ``models.yml`` is read.

An entry is checked when it is asked for, so that a mistake in one stops only what needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationError

from cradle_lib import bounded_yaml, paths
from cradle_lib.detection.models.model import Model
from cradle_lib.errors import RegistryError


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
            self._checked[name] = _entry(name, self._entries[name], self._path)
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
        entries = bounded_yaml.read(path)
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


def _entry(name: str, entry: object, path: Path) -> Model:
    if not isinstance(entry, dict):
        place = f"{paths.shown(path)}, model {name}"
        raise RegistryError(f"{place}: expected fields, found {entry!r:.80}")
    try:
        return Model.model_validate({**entry, "id": name})
    except ValidationError as error:
        raise RegistryError(f"{paths.shown(path)}, model {name}: {faults(error)}") from error


def faults(error: ValidationError) -> str:
    """Says all that is wrong with an entry, field by field; never what was given."""
    found = []
    for fault in error.errors():
        field = ".".join(map(str, fault["loc"]))
        problem = fault["msg"].removeprefix("Value error, ")
        found.append(f"field {field}: {problem}" if field else problem)
    return "; ".join(found)
