"""Identifies what a Python function computes: its source, and the values that it uses.

A function's source does not contain the values that are bound to it (arguments of a
``functools.partial``, variables of an enclosing function, defaults), nor the global variables and
other functions that it uses. Functions that differ only in these must not get each other's answers.
A value that can't be compared exactly is unknown: then the author must give a version.
"""

from __future__ import annotations

import ast
import dis
import functools
import importlib.util
import inspect
import sys
import sysconfig
import textwrap
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path, PosixPath
from re import Pattern
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.errors import EngineError

# Exactly these types: their text is their value.
_PLAIN: Final = (type(None), bool, int, float, complex, str, bytes, PosixPath)
_CONTAINERS: Final = (tuple, list, set, frozenset)
# With these, a function may use any other code.
_DYNAMIC: Final = ("__import__", "eval", "exec", "importlib")
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
        if isinstance(function, FunctionType):
            # Its code counts even if it belongs to an installed package.
            self._seen[id(function)] = 0, function
            self._add_function("", function)
        else:
            self._add("", function)
        self.source = self._sources[0] if self._sources else None
        self.text = "\n".join([*filter(None, self._sources), *self._values])

    def _add(self, name: str, value: object) -> None:
        """Adds a value with its name, and all that it consists of."""
        if (text := _exact(value)) is not None:
            self._values.append(f"{name} = {text}")
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
            self._add_parts(name, value, vars(value))
        elif kind is functools._lru_cache_wrapper:
            self._add(name, value.__wrapped__)
            self._add_parts(name, value, vars(value))
        elif kind is dict and all(_exact(key) is not None for key in value):
            self._add_parts(name, value, {_exact(key): each for key, each in value.items()})
        elif kind in (tuple, list):
            self._add_parts(name, value, dict(enumerate(value)))
        elif isinstance(value, FunctionType) and not _is_installed(value.__code__.co_filename):
            self._add_function(name, value)
        elif (place := _name_in_package(value)) is not None:
            self._values.append(f"{name} = {place}")
        elif isinstance(value, FunctionType):
            # Made by a package, such as a decorator, from something else.
            self._values.append(f"{name} = {value.__module__} {value.__qualname__}")
            self._add_bound(value)
        else:
            shown = name or getattr(value, "__name__", kind.__name__)
            self.unknown.append(f"`{shown}` ({kind.__name__})")

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
            if name in _DYNAMIC or (is_import and not _is_installed_module(name)):
                self.unknown.append(f"`{name}` (import)")
            elif not is_import and name in function.__globals__:
                self._add(name, function.__globals__[name])


def _names_in(code: CodeType) -> Iterator[tuple[str, bool]]:
    """Names what a function and those within it read: variables, and modules that they import."""
    for each in (code, *_codes_within(code)):
        steps = list(dis.get_instructions(each))
        for at, step in enumerate(steps):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                yield step.argval, False
            elif step.opname == "IMPORT_NAME":
                # Two steps before, the number of leading dots is loaded.
                yield "." * steps[at - 2].argval + step.argval, True


def _codes_within(code: CodeType) -> Iterator[CodeType]:
    """Gives the code of all functions and classes that are defined within one, or in a file."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes_within(inner)


def _exact(value: object) -> str | None:
    """Writes a plain value, so that other values have other texts; ``None`` for any other value."""
    kind = type(value)
    try:
        if kind in _PLAIN:
            return repr(value)
        if isinstance(value, Pattern):
            return f"re.compile({value.pattern!r}, {value.flags})"
        if isinstance(value, tuple | list | set | frozenset) and kind in _CONTAINERS:
            parts = [_exact(each) for each in value]
        elif isinstance(value, dict) and kind is dict:
            parts = [_exact(each) for item in value.items() for each in item]
        else:
            return None
    except (RecursionError, ValueError):  # A container in itself, or a number of 4,300 digits.
        return None
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    known = sorted(known) if kind in (set, frozenset) else known
    return f"{kind.__name__}({', '.join(known)})"


def _is_installed(file: str) -> bool:
    return any(Path(file).resolve().is_relative_to(folder) for folder in _INSTALLED)


def _name_in_package(value: Any) -> str | None:
    """Gives the name under which an installed package has a module, function, class or constant."""
    if isinstance(value, ModuleType):
        return value.__name__ if _is_installed_module(value.__name__) else None
    if isinstance(value, Enum):
        place = _name_in_package(type(value))
        return place and f"{place}.{value.name}"
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not (isinstance(module, str) and isinstance(name, str) and _is_installed_module(module)):
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}.{name}" if found is value else None


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
    """Finds the source of a function; ``None`` for two lambdas in one line, and without a file."""
    if code.co_filename == "<string>":  # Of `exec`: Python 3.13 may give the source of `-c`.
        return None
    try:
        if code.co_name != "<lambda>":
            return textwrap.dedent(inspect.getsource(code))
        # `inspect` gives the first line of a lambda, with whatever else is in it.
        text = "".join(inspect.findsource(code)[0])
        found = [
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno
        ]
        return ast.get_source_segment(text, found[0]) if len(found) == 1 else None
    except (OSError, TypeError, SyntaxError):
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
    try:
        return frozenset(_codes_within(compile(path.read_bytes(), path, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        return frozenset()
