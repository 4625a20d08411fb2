"""Which modules of the library a piece of code uses, found without running it.

A notebook imports names from the library's front door. A name is followed to the module
that defines it, through lazy stubs and re-exporting packages, and from there through every
import, also those inside functions. So a change in a module touches exactly the code that
can reach it, and not everything that shares a package with it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from cradle_lib.errors import BookError, compose

_CODE_SUFFIXES: Final = {".py", ".pyi", ".pyc", ".pyo"}
_NOT_DATA: Final = {"py.typed"}
_ANYTHING: Final = "*"
_DOTTED: Final = re.compile(r"[A-Za-z_][\w]*(\.[A-Za-z_]\w*)+")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a piece of code rests on.

    Attributes:
        files: Modules of the library and the data files beside them, sorted.
        foreign: Top-level names of the third-party packages they import, sorted.
    """

    files: tuple[Path, ...]
    foreign: tuple[str, ...]


@dataclass
class _Source:
    """A parsed module: its imports as (module, name), without those for type checkers only."""

    tree: ast.Module
    imports: list[tuple[str, str | None, str]] = field(default_factory=list)

    @cached_property
    def attributes(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute):
                *head, last = ast.unparse(node).split(".")
                found.setdefault(".".join(head), set()).add(last)
        return found


class Library:
    """A package whose code can be followed."""

    def __init__(self, root: Path, package: str) -> None:
        """Opens a package.

        Args:
            root: The folder that holds the package.
            package: Its name.
        """
        self.root, self.package = root, package
        self._sources: dict[Path, _Source] = {}

    def usage(self, code: str, *, path: Path) -> Usage:
        """Follows a piece of code through the library.

        Args:
            code: Python source, such as the code cells of a notebook.
            path: Where it comes from, for messages.

        Returns:
            The files of the library that it can reach, and the third-party packages.

        Raises:
            BookError: If the code, or a module that it reaches, does not parse.
        """
        foreign: set[str] = set()
        seen: set[str] = set()
        queue = list(self._reached(self._parse(code, path, ""), foreign))
        while queue:
            module = queue.pop()
            if module in seen:
                continue
            seen.add(module)
            queue.extend(self._parents_with_code(module))
            file = self._file(module)
            if file is not None and not self._passes_on(module):
                queue.extend(self._reached(self._load(file, module), foreign))
        files = {file for module in seen if (file := self._file(module)) is not None}
        data = {item for folder in {file.parent for file in files} for item in _data_files(folder)}
        return Usage(tuple(sorted(files | data)), tuple(sorted(foreign)))

    def _file(self, module: str) -> Path | None:
        base = self.root.joinpath(*module.split("."))
        for file in (base / "__init__.py", base.with_name(base.name + ".py")):
            if file.is_file():
                return file
        return None

    def _is_module(self, name: str) -> bool:
        return self._file(name) is not None or self._is_folder(name)

    def _is_folder(self, name: str) -> bool:
        return self.root.joinpath(*name.split(".")).is_dir()

    def _is_package(self, module: str) -> bool:
        file = self._file(module)
        return file.name == "__init__.py" if file else self._is_folder(module)

    def _inside(self, module: str) -> bool:
        return module == self.package or module.startswith(self.package + ".")

    def _load(self, file: Path, module: str) -> _Source:
        if file not in self._sources:
            package = module if file.stem == "__init__" else module.rpartition(".")[0]
            self._sources[file] = self._parse(file.read_text(encoding="utf-8"), file, package)
        return self._sources[file]

    def _parse(self, code: str, path: Path, package: str) -> _Source:
        try:
            tree = ast.parse(code)
        except SyntaxError as error:
            problem = f"the code does not parse: {error.msg}, line {error.lineno}"
            raise BookError(compose(problem, path=path)) from None
        source = _Source(tree)
        for node in _without_type_checking(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    # `import a.b` binds `a`, from which more than `b` can be taken.
                    bound = alias.asname or alias.name.partition(".")[0]
                    if not alias.asname:
                        source.imports.append((bound, None, bound))
                    source.imports.append((alias.name, None, alias.asname or alias.name))
            elif isinstance(node, ast.ImportFrom):
                base = _absolute(node, package)
                source.imports.extend((base, a.name, a.asname or a.name) for a in node.names)
            elif (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and _DOTTED.fullmatch(name := node.value.partition(":")[0])
                and self._inside(name)
            ):
                # A module that is imported by name, such as an engine.
                source.imports.append((name, None, _ANYTHING))
        return source

    def _reached(self, source: _Source, foreign: set[str]) -> Iterator[str]:
        for module, name, bound in source.imports:
            if not self._inside(module):
                top = module.partition(".")[0]
                if top and top not in sys.stdlib_module_names:
                    foreign.add(top)
            elif name is None:
                yield from self._whole(module, source, bound)
            elif name == "*":
                yield module
                yield from self._starred(module)
            else:
                submodule = f"{module}.{name}"
                resolved = self._resolve(module, name)
                yield from resolved
                if resolved == (submodule,) and self._is_package(submodule):
                    yield from self._whole(submodule, source, bound)

    def _whole(self, module: str, source: _Source, bound: str) -> Iterator[str]:
        """A module by itself, and for a package what its users take from it."""
        while not self._is_module(module):
            module = module.rpartition(".")[0]
        yield module
        if bound == _ANYTHING:
            yield from self._starred(module)
        elif self._is_package(module):
            for name in source.attributes.get(bound, ()):
                resolved = self._resolve(module, name)
                yield from resolved
                if resolved == (f"{module}.{name}",) and self._is_package(resolved[0]):
                    yield from self._whole(resolved[0], source, f"{bound}.{name}")

    def _starred(self, module: str) -> Iterator[str]:
        for name in self._exports(module):
            yield from self._resolve(module, name)

    def _resolve(self, module: str, name: str, depth: int = 0) -> tuple[str, ...]:
        """The modules that define a name which is taken from ``module``."""
        if not self._is_package(module):
            return (module,)
        exports = self._exports(module)
        target = exports.get(name)
        if target is not None and depth < 20:
            origin, original = target
            if not self._inside(origin):
                return (module,)
            if origin == module:
                return (f"{module}.{original}",)
            return self._resolve(origin, original, depth + 1)
        if self._is_module(f"{module}.{name}"):
            return (f"{module}.{name}",)
        return (module, *(m for m, star in exports.values() if star == "*" and self._inside(m)))

    def _exports(self, module: str) -> dict[str, tuple[str, str]]:
        """Names that a package takes from elsewhere: its stub's if it is lazy, and its own."""
        found: dict[str, tuple[str, str]] = {}
        folder = self.root.joinpath(*module.split("."))
        for file in (folder / "__init__.py", folder / "__init__.pyi"):
            if not file.is_file():
                continue
            for node in self._load(file, module).tree.body:
                if isinstance(node, ast.ImportFrom):
                    base = _absolute(node, module)
                    for alias in node.names:
                        key = f"*{base}" if alias.name == "*" else alias.asname or alias.name
                        found[key] = (base, alias.name)
        return found

    def _parents_with_code(self, module: str) -> Iterator[str]:
        """Packages on the way whose ``__init__`` does more than pass names on."""
        while module := module.rpartition(".")[0]:
            if not self._passes_on(module):
                yield module

    def _passes_on(self, module: str) -> bool:
        file = self._file(module)
        if file is None or file.name != "__init__.py":
            return file is None
        return _only_passes_on(self._load(file, module).tree)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def _without_type_checking(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for other in node.orelse:
                yield other
                yield from _without_type_checking(other)
            continue
        yield node
        yield from _without_type_checking(node)


def _only_passes_on(tree: ast.Module) -> bool:
    for node in tree.body:
        match node:
            case ast.Import() | ast.ImportFrom():
                continue
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.Assign(value=ast.Call(func=ast.Attribute(attr="attach_stub" | "attach"))):
                continue
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                continue
            case ast.If() if ast.unparse(node.test).endswith("TYPE_CHECKING"):
                continue
        return False
    return True


def _data_files(folder: Path) -> Iterator[Path]:
    """Files beside a module that are not code, and those in its folders that are no packages."""
    for item in sorted(folder.iterdir()):
        if item.name.startswith((".", "__")) or item.name in _NOT_DATA:
            continue
        if item.is_file() and item.suffix not in _CODE_SUFFIXES:
            yield item
        elif item.is_dir() and not any(item.glob("*.py")):
            yield from _data_files(item)
