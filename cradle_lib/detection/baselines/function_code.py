"""Identifies what a Python function computes: its source, and the values that it uses.

A function's source does not contain the values that are bound to it (arguments of a
``functools.partial``, variables of an enclosing function, defaults, attributes of an object), nor
the global variables, functions and modules that it uses. Functions that differ only in these must
not get each other's answers.
"""

from __future__ import annotations

import dis
import functools
import inspect
import re
import sys
import sysconfig
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.errors import EngineError

_PLAIN: Final = (type(None), bool, int, float, complex, str, bytes, PurePath, re.Pattern)
# Folders of Python, of installed packages and of this project: their code is known by its name.
_INSTALLED: Final = (
    *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib")),
    *(paths.PACKAGE.parent / name for name in ("cradle_lib", "cradle_engines", "cradle_extras")),
)


class FunctionCode:
    """The code of a function and the values that it uses, as far as Python can read them.

    Args:
        function: A function or another callable object.
        with_globals: Whether the values of global variables count.

    Attributes:
        source: Source of the function, or of the class of another callable object, without
            indentation; ``None`` if Python can't find it.
        text: The source, those of the functions, classes and modules that it uses, and its values.
        unknown: Names and types of the values that can't be compared, such as a trained model.

    Raises:
        EngineError: If a file was changed after it was imported, so that its text is not the code
            that runs.
    """

    def __init__(self, function: object, *, with_globals: bool = True) -> None:
        self.unknown: list[str] = []
        self._sources: list[str | None] = []
        self._values: list[str] = []
        self._with_globals = with_globals
        # By address, with the objects themselves, because addresses of others are used again.
        self._seen: dict[int, object] = {}
        self._add("", function)
        self.source = self._sources[0] if self._sources else None
        self.text = "\n".join([*filter(None, self._sources), *self._values])

    def _add(self, name: str, value: object) -> None:
        """Adds a value, with all of which it consists."""
        if isinstance(value, _PLAIN):
            self._values.append(f"{name} = {value!r}")
        elif id(value) not in self._seen:
            self._seen[id(value)] = value
            self._add_new(name, value)

    def _add_new(self, name: str, value: object) -> None:
        if isinstance(value, FunctionType | type | ModuleType) or inspect.isbuiltin(value):
            self._add_code(name, value)
        elif inspect.ismethod(value):
            self._add(name, value.__func__)
            self._add(f"{name}.self", value.__self__)
        elif isinstance(value, functools.partial):
            self._add(name, value.func)
            self._add_parts(name, value, {**dict(enumerate(value.args)), **value.keywords})
        elif isinstance(value, Mapping):
            self._add_parts(name, value, {repr(key): each for key, each in value.items()})
        elif isinstance(value, tuple | list):
            self._add_parts(name, value, dict(enumerate(value)))
        elif isinstance(value, set | frozenset):
            self._add_parts(name, value, dict(enumerate(sorted(value, key=repr))))
        elif isinstance(value, staticmethod | classmethod | functools._lru_cache_wrapper):
            self._add(name, value.__wrapped__)
        elif _is_installed(type(value)) or not hasattr(value, "__dict__"):
            self.unknown.append(f"`{name or type(value).__name__}` ({type(value).__name__})")
        else:
            self._add(name, type(value))
            self._add_parts(name, value, vars(value))

    def _add_parts(self, name: str, whole: object, parts: Mapping[Any, object]) -> None:
        self._values.append(f"{name}: {type(whole).__name__} of {len(parts)}")
        for key, value in parts.items():
            self._add(f"{name}.{key}".strip("."), value)

    def _add_code(self, name: str, value: Any) -> None:
        if _is_installed(value):
            where = f"{getattr(value, '__module__', '')} {getattr(value, '__qualname__', value)}"
            self._values.append(f"{name} = {where}")
            if isinstance(value, FunctionType):
                self._add_bound(value)
        elif isinstance(value, FunctionType):
            _require_unchanged(value)
            self._add_text(_source_of(value.__code__), value.__name__)
            self._add_bound(value)
            self._add_globals(value)
        elif isinstance(value, type):
            self._add_class(value, name)
        else:
            self._add_module(value)

    def _add_module(self, module: ModuleType) -> None:
        file = Path(str(module.__file__))
        self._sources.append(file.read_text(encoding="utf-8"))
        for own in vars(module).values():
            if isinstance(own, FunctionType) and Path(own.__code__.co_filename) == file:
                _require_unchanged(own)
                self._add_bound(own)
            elif isinstance(own, FunctionType | ModuleType):
                self._add("", own)

    def _add_class(self, kind: type, name: str) -> None:
        functions = [
            value
            for value in vars(kind).values()
            # Without those that Python wrote, such as the methods of a dataclass.
            if isinstance(value, FunctionType) and not _is_installed(value)
            if _source_of(value.__code__) is not None
        ]
        source = _source_of(kind)
        if source is not None or not functions:
            self._add_text(source, name or kind.__name__)
        for function in functions:
            _require_unchanged(function)
            if source is None:  # Python does not find that of a class in a notebook.
                self._add_text(_source_of(function.__code__), function.__name__)
            self._add_bound(function)
            self._add_globals(function)
        for base in kind.__bases__:
            self._add(name, base)

    def _add_text(self, source: str | None, name: str) -> None:
        self._sources.append(source)
        if source is None:
            self.unknown.append(f"`{name}` (no source)")

    def _add_bound(self, function: FunctionType) -> None:
        """Adds defaults, and variables of enclosing functions."""
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        for at, value in enumerate(defaults):
            self._add(f"{function.__name__} default {at}", value)
        names = function.__code__.co_freevars
        for name, cell in zip(names, function.__closure__ or (), strict=True):
            self._add(name, cell.cell_contents)

    def _add_globals(self, function: FunctionType) -> None:
        for name in dict.fromkeys(_global_names(function.__code__)):
            if self._with_globals and name in function.__globals__:
                self._add(name, function.__globals__[name])


def _global_names(code: CodeType) -> Iterator[str]:
    """Names the global variables that a function reads, also in functions within it."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _global_names(inner)


def _is_installed(value: Any) -> bool:
    """Whether a function, class or module belongs to Python, to a package or to this project."""
    if isinstance(value, FunctionType):
        file: str | None = value.__code__.co_filename
    else:
        module = value.__name__ if isinstance(value, ModuleType) else value.__module__
        if module is None or module in sys.builtin_module_names:
            return True
        file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and any(
        Path(file).resolve().is_relative_to(folder) for folder in _INSTALLED
    )


def _source_of(code: CodeType | type) -> str | None:
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
    """Compiles a file, and gives the code of all its functions."""

    def within(code: CodeType) -> Iterator[CodeType]:
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                yield inner
                yield from within(inner)

    try:
        return frozenset(within(compile(path.read_bytes(), path, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        return frozenset()
