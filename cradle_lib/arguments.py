"""Checks the arguments of public functions against their annotations."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, wraps
from itertools import starmap
from math import inf
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, ParamSpec, TypeVar

import numpy as np

from cradle_lib.errors import ArgumentError, CradleError

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class Range(NamedTuple):
    """The range of a number in an annotation; both ends are included."""

    low: float
    high: float = inf

    def __str__(self) -> str:
        """The range in words."""
        low, high = f"{self.low:g}", f"{self.high:g}"
        return f"at least {low}" if self.high == inf else f"between {low} and {high}"


Seed = Annotated[int, Range(0)]
Positive = Annotated[int, Range(1)]
Share = Annotated[float, Range(0, 1)]
# From a millisecond to a day.
Seconds = Annotated[float, Range(0.001, 86_400)]

_UNIONS: Final = (typing.Union, UnionType)
_LISTS: Final = (Sequence, Collection, Iterable)
# What each type in an annotation accepts, and its description.
_KINDS: Final[Mapping[Any, tuple[Any, str]]] = {
    bool: ((bool, np.bool_), "True or False"),
    float: (Real, "a number"),
    int: (Integral, "a whole number"),
    str: (str, "text"),
    NoneType: (NoneType, "None"),
    Path: (PathLike, "a path"),
    Callable: (Callable, "a function"),
    np.ndarray: (object, "numbers"),
    Mapping: (Mapping, "a mapping"),
}
# The functions that return objects of some classes.
_SOURCES: Final = {
    "Annotations": "load_annotations",
    "Corpus": "load_corpus",
    "Evaluation": "evaluate",
    "Posts": "load_posts",
    "Predictions": "run_model",
    "Published": "published_table",
}


def checked(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Makes a function refuse arguments that do not fit their annotations.

    The function then raises :class:`.ArgumentError`, which names the argument, its value and what
    was expected.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def checking(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        for problem in starmap(misfit, _arguments(function, signature, args, kwargs)):
            if problem is not None:
                raise ArgumentError(problem)
        return function(*args, **kwargs)

    return checking


def check_fields(owner: Any, error: type[CradleError] = ArgumentError) -> None:
    """Refuses an object of a dataclass whose fields do not fit their annotations."""
    kind: Any = type(owner)
    for name, hint in _hints(kind).items():
        if problem := misfit(name, getattr(owner, name), hint):
            raise error(problem)


def require_known(what: str, name: str, known: Collection[str]) -> None:
    """Refuses a name that is not one of the known ones, and suggests the most similar.

    ``what`` says what is named, such as ``column``.

    Raises:
        ArgumentError: If the name is not known.
    """
    if name not in known:
        near = get_close_matches(str(name), known, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise ArgumentError(f"no {what} {name!r}.{meant} Choose one of {', '.join(known)}.")


def _arguments(
    function: Callable[..., Any],
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Iterator[tuple[str, Any, Any]]:
    """Lists the arguments of a call with their annotations."""
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        known = ", ".join(signature.parameters)
        raise ArgumentError(f"{function.__name__}: {error}. Its arguments are {known}.") from None
    hints = _hints(function)
    for name, hint in hints.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            yield from ((key, value, hint) for key, value in given.get(name, {}).items())
        elif name in given:
            yield name, given[name], hint


@cache
def _hints(owner: Callable[..., Any]) -> dict[str, Any]:
    # The class of a function's result may be imported for type checkers only.
    own = {name: hint for name, hint in owner.__annotations__.items() if name != "return"}
    names = vars(sys.modules[owner.__module__])
    return typing.get_type_hints(SimpleNamespace(__annotations__=own), names, include_extras=True)


def misfit(name: str, value: Any, hint: Any) -> str | None:
    """Says in a sentence why a value does not fit an annotation; ``None`` if it does."""
    kind, parts = typing.get_origin(hint), typing.get_args(hint)
    if kind is Literal:
        if any(isinstance(value, type(part)) and value == part for part in parts):
            return None
        return f"{name} is {_brief(value)}. Choose one of {', '.join(map(str, parts))}."
    if kind is Annotated:
        span = _span(parts)
        if misfit(name, value, parts[0]) is None:
            inside = span.low <= value <= span.high
            return None if inside else f"{name} is {value!r}. It must be {span}."
    elif kind in _UNIONS:
        if value is None and NoneType in parts:
            return None
        problems = [misfit(name, value, part) for part in parts if part is not NoneType]
        if None in problems or len(problems) == 1:
            return None if None in problems else problems[0]
    elif _fits(value, hint):
        return next(filter(None, starmap(misfit, _items(name, value, hint))), None)
    return f"{name} is {_brief(value)}, expected {_described(hint)}."


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value has the type of an annotation, whatever it contains."""
    kind, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if kind is np.ndarray:
        return np.asarray(value).dtype.kind in "biuf"
    if kind in _KINDS:
        # For Python, True and False are also whole numbers.
        return isinstance(value, _KINDS[kind][0]) and (kind is bool or not isinstance(value, bool))
    if kind in _LISTS:
        # Arrays and columns of data frames are lists too; an iterator may be used up.
        accepted = Iterable if kind is Iterable else Collection
        return isinstance(value, accepted) and not isinstance(value, str | bytes | Mapping)
    if kind is tuple and Ellipsis not in parts:
        return isinstance(value, tuple) and len(value) == len(parts)
    return kind is Any or not isinstance(kind, type) or isinstance(value, kind)


def _items(name: str, value: Any, hint: Any) -> Iterator[tuple[str, Any, Any]]:
    """Lists what a value contains, with the annotations."""
    kind, parts = typing.get_origin(hint), typing.get_args(hint)
    if kind is Mapping and parts != (Any, Any):
        for key, item in value.items():
            yield f"a key of {name}", key, parts[0]
            yield f"{name}[{_brief(key)}]", item, parts[1]
    elif (kind in _LISTS and isinstance(value, Collection)) or kind is tuple:
        one = kind is not tuple or Ellipsis in parts
        for place, item in enumerate(value):
            yield f"{name}[{place}]", item, parts[0 if one else place]


def _described(hint: Any) -> str:
    kind, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if kind is Annotated:
        return f"{_described(parts[0])}, {_span(parts)}"
    if kind in _UNIONS or kind is Literal:
        return " or ".join(map(repr if kind is Literal else _described, parts))
    if kind in _LISTS:
        return f"a list, each item {_described(parts[0])}"
    if kind in _KINDS:
        return _KINDS[kind][1]
    name = str(kind.__name__)
    return f"{name}, as `{_SOURCES[name]}` returns it" if name in _SOURCES else name


def _span(parts: tuple[Any, ...]) -> Range:
    return next(part for part in parts if isinstance(part, Range))


def _brief(value: Any) -> str:
    """Quotes a simple value, and names the type of any other."""
    if isinstance(value, str | bytes | Real | PathLike | NoneType):
        return f"{value!r:.60}"
    return f"a {type(value).__name__}"
