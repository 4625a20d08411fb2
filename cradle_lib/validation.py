"""Describes what is wrong with the fields of a file or of settings, in plain words.

Pydantic finds the faults; its own messages name types of Python and suggest nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

_DATE: Final = "a date such as 2026-11-25"
# What a field must be, by Pydantic's type of error. Braces contain details of the error.
_EXPECTED: Final = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "date_from_datetime_inexact": _DATE,
    "date_from_datetime_parsing": _DATE,
    "date_parsing": _DATE,
    "date_type": _DATE,
    "dict_type": "a mapping",
    "enum": "{expected}",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "string_type": "text",
    "too_long": "a list of at most {max_length}",
    "too_short": "a list of at least {min_length}",
    "tuple_type": "a list",
}
_UNKNOWN: Final = ("extra_forbidden", "invalid_key", "unexpected_keyword_argument")
_MAPPINGS: Final = ("model_type", "model_attributes_type", "dataclass_type")
# Pydantic adds one of these to the place if a field may have several simple types.
_TYPES: Final = ("bool", "float", "int", "str")
# Precedes the known fields.
_FIELDS: Final = " Fields: "
# More faults than these are only counted.
_MOST: Final = 5


def faults(error: ValidationError, kind: Any, *, quoted: bool = False) -> str:
    """Lists the faults that Pydantic found.

    Args:
        error: The error.
        kind: The class that was validated, which has the names of the fields.
        quoted: Whether to quote wrong values. Never for a file that could contain a key.

    Returns:
        A phrase for each fault, separated by semicolons, without a full stop.
    """
    every = error.errors(include_url=False)
    found = [*dict.fromkeys(_phrase(fault, kind, quoted=quoted) for fault in every)]
    for place, phrase in enumerate(found):
        # The same fields are listed once.
        problem, marker, fields = phrase.partition(_FIELDS)
        if marker and any(other.endswith(fields) for other in found[:place]):
            found[place] = problem.rstrip(".")
    more = [f"and {len(found) - _MOST} more faults"] if len(found) > _MOST else []
    return "; ".join([*found[:_MOST], *more]).replace("?; ", "? ")


def _phrase(fault: Mapping[str, Any], kind: Any, *, quoted: bool) -> str:
    place, problem = fault["loc"], fault["type"]
    if problem in _UNKNOWN:
        return _unknown(place, kind)
    simple = place[-1:] and place[-1] in _TYPES
    place = place[:-1] if simple else place
    field = f"field `{'.'.join(map(str, place))}`" if place else "the content"
    if problem == "missing":
        hint = getattr(_field(kind, place), "annotation", None)
        choices = get_args(hint) if get_origin(hint) is Literal else ()
        return f"{field} is missing" + f": one of {', '.join(choices)}" * bool(choices)
    found = f", found {fault['input']!r:.80}" if quoted else ""
    expected = _EXPECTED.get(problem, "").format(**fault.get("ctx", {}))
    if simple:
        expected = "text, a number, true or false"
    elif problem in (*_MAPPINGS, "string_pattern_mismatch"):
        about = _field(kind, place)
        fields = f"a mapping with the fields {', '.join(_names(_at(kind, place)))}"
        expected = (about.description if about else None) or fields
    if expected:
        return f"{field} must be {expected}{found}"
    message = str(fault["msg"]).removeprefix("Value error, ").rstrip(".")
    return f"{field}: {message}{found}" if place else message


def _unknown(place: Sequence[Any], kind: Any) -> str:
    """Describes an unknown field, with the field that was probably meant."""
    *above, name = place
    owner = _at(kind, above)
    where = f" in `{'.'.join(map(str, above))}`" if above else ""
    known = _names(owner)
    near = get_close_matches(str(name), known, n=1)
    inside = [field for field in known if name in _names(_at(owner, [field]))]
    problem = f"unknown field `{name}`{where}"
    if inside:
        problem += f"; it belongs in `{inside[0]}`"
    elif near:
        problem += f"; did you mean `{near[0]}`?"
    if not known:
        return problem
    return f"{problem}{'' if problem.endswith('?') else '.'}{_FIELDS}{', '.join(known)}"


def _at(kind: Any, place: Sequence[Any]) -> Any:
    """Finds the class with the fields at a place; ``None`` if it has no fixed fields."""
    for part in place:
        # Other parts are positions in a list, or keys of a mapping.
        if part in _names(kind):
            kind = next(_classes(kind.model_fields[part].annotation), None)
    return kind


def _field(kind: Any, place: Sequence[Any]) -> FieldInfo | None:
    """Finds the description of the field at a place, if there is one."""
    found: Mapping[str, FieldInfo] = getattr(_at(kind, place[:-1]), "model_fields", {})
    return found.get(place[-1]) if place else None


def _classes(hint: Any) -> Iterator[type[BaseModel]]:
    """Finds the classes with fields in an annotation."""
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        yield hint
    for part in get_args(hint):
        yield from _classes(part)


def _names(kind: Any) -> list[str]:
    return [*getattr(kind, "model_fields", ())]
