"""Identifies what a Python function computes: its source, and the values that it uses.

A function's source does not contain the values that are bound to it (arguments of a
``functools.partial``, variables of an enclosing function, defaults), nor the global variables and
other functions that it uses. Functions that differ only in these must not get each other's answers.
Whatever can't be compared exactly is unknown: then the author must give a version.
"""

from __future__ import annotations

import dis
import functools
import importlib.util
import inspect
import sys
import sysconfig
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path, PosixPath
from re import Pattern
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.errors import EngineError

# Exactly these types: their text is their value.
_PLAIN: Final = (type(None), bool, int, float, complex, str, bytes, PosixPath)
# Folders of Python, of installed packages and of this project: their code is known by its name.
_INSTALLED: Final = (
    *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib")),
    *(paths.PACKAGE.parent / name for name in ("cradle_lib", "cradle_engines", "cradle_extras")),
)


class FunctionCode:
    """The code of a function and the values that it uses.

    Args:
        function: A function, a partial, or any other callable object, which is unknown.

    Attributes:
        source: Source of the function without indentation; ``None`` if Python can't find it.
        text: The source, those of the author's other functions that it uses, and its values.
        unknown: Names and types of what it uses and can't be compared: objects, classes and
            modules that are not installed, and functions without a source.

    Raises:
        EngineError: If a file was changed after it was imported, so that its text is not the code
            that runs.
    """

    def __init__(self, function: object) -> None:
        self.unknown: list[str] = []
        self._sources: list[str | None] = []
        self._values: list[str] = []
        # The objects read so far. They are kept, because the addresses of others are used again.
        self._seen: dict[int, tuple[int, object]] = {}
        self._add("", function)
        self.source = self._sources[0] if self._sources else None
        self.text = "\n".join([*filter(None, self._sources), *self._values])

    def _add(self, name: str, value: object) -> None:
        """Adds a value with its name, and all that it consists of."""
        if type(value) in _PLAIN:
            self._values.append(f"{name} = {value!r}")
        elif type(value) is Pattern:
            self._values.append(f"{name} = {value.pattern!r} with {value.flags}")
        elif id(value) in self._seen:
            self._values.append(f"{name} = object {self._seen[id(value)][0]}")
        else:
            self._seen[id(value)] = len(self._seen), value
            self._add_new(name, value)

    def _add_new(self, name: str, value: Any) -> None:
        kind = type(value)
        if kind is functools.partial:
            self._add(name, value.func)
            self._add_parts(name, value, {**dict(enumerate(value.args)), **value.keywords})
        elif kind is functools._lru_cache_wrapper:
            self._add(name, value.__wrapped__)
        elif kind is dict:
            self._add_parts(name, value, {repr(key): each for key, each in value.items()})
        elif kind in (tuple, list):
            self._add_parts(name, value, dict(enumerate(value)))
        elif kind in (set, frozenset):
            self._add_parts(name, value, dict(enumerate(sorted(value, key=repr))))
        elif isinstance(value, FunctionType) and not _is_installed(value.__code__.co_filename):
            self._add_function(name, value)
        elif isinstance(value, FunctionType | BuiltinFunctionType | type | ModuleType):
            self._add_installed(name, value)
        else:
            self.unknown.append(f"`{name or kind.__name__}` ({kind.__name__})")

    def _add_parts(self, name: str, whole: object, parts: Mapping[Any, object]) -> None:
        self._values.append(f"{name}: {type(whole).__name__} of {len(parts)}")
        for key, value in parts.items():
            self._add(f"{name}.{key}".strip("."), value)

    def _add_function(self, name: str, function: FunctionType) -> None:
        _require_unchanged(function)
        source = _source_of(function.__code__)
        self._sources.append(source)
        if source is None:
            self.unknown.append(f"`{name or function.__name__}` (no source)")
        if len(self._sources) > 1:
            self._values.append(f"{name} = source {len(self._sources)}")
        self._add_bound(function)
        self._add_globals(function)

    def _add_installed(self, name: str, value: Any) -> None:
        """Adds a function, class or module of a package by its name; any other one is unknown."""
        module = value.__name__ if isinstance(value, ModuleType) else value.__module__
        if isinstance(value, FunctionType) or _is_installed_module(module):
            self._values.append(f"{name} = {module} {getattr(value, '__qualname__', '')}")
        else:
            self.unknown.append(f"`{name or value.__name__}` ({type(value).__name__})")
        if isinstance(value, FunctionType):
            self._add_bound(value)

    def _add_bound(self, function: FunctionType) -> None:
        """Adds defaults, attributes, and variables of enclosing functions."""
        own = function.__name__
        for at, value in enumerate(function.__defaults__ or ()):
            self._add(f"{own} default {at}", value)
        for name, value in {**(function.__kwdefaults__ or {}), **vars(function)}.items():
            self._add(f"{own} {name}", value)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for name, cell in cells:
            try:
                self._add(name, cell.cell_contents)
            except ValueError:
                self.unknown.append(f"`{name}` (not assigned yet)")

    def _add_globals(self, function: FunctionType) -> None:
        for name, is_import in dict.fromkeys(_names_in(function.__code__)):
            if is_import and not _is_installed_module(name):
                self.unknown.append(f"`{name}` (import)")
            elif not is_import and name in function.__globals__:
                self._add(name, function.__globals__[name])


def _names_in(code: CodeType) -> Iterator[tuple[str, bool]]:
    """Names what a function and those within it read: variables, and modules that they import."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "IMPORT_NAME"):
            yield step.argval, step.opname == "IMPORT_NAME"
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names_in(inner)


def _is_installed(file: str) -> bool:
    return any(Path(file).resolve().is_relative_to(folder) for folder in _INSTALLED)


def _is_installed_module(name: str | None) -> bool:
    top = (name or "").partition(".")[0]
    if top in sys.stdlib_module_names:
        return True
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):  # Without a file, such as `__main__`.
        return False
    return spec is not None and _is_installed(spec.origin or "/")


def _source_of(code: CodeType) -> str | None:
    if code.co_filename == "<string>":  # Of `exec`: Python 3.13 may give the source of `-c`.
        return None
    try:
        return textwrap.dedent(inspect.getsource(code))
    except (OSError, TypeError):
        return None


def _require_unchanged(function: FunctionType) -> None:
    """Refuses a function whose file was changed after it was imported."""
    path = Path(function.__code__.co_filename)
    if path.is_file() and function.__code__ not in _codes_in(path, path.stat().st_mtime_ns):
        raise EngineError(
            f"{function.__qualname__}: {paths.shown(path)} was changed after it was imported, so "
            "its text is not the code that runs. Restart Python (in a notebook: the kernel)."
        )


@functools.cache
def _codes_in(path: Path, changed: int) -> frozenset[CodeType]:
    """Compiles a file, and gives the code of all its functions; ``changed`` is for the cache."""

    def within(code: CodeType) -> Iterator[CodeType]:
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                yield inner
                yield from within(inner)

    try:
        return frozenset(within(compile(path.read_bytes(), path, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        return frozenset()
