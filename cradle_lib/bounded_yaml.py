"""YAML that people write by hand, read within bounds.

A few lines of YAML can stand for gigabytes: an alias repeats what it names, and aliases of
aliases multiply. Two equal keys silently become the last of them, and a tag in the text calls
Python's own constructors with whatever stands behind it. Here a document has a size, a depth and
no key twice; everything else is one :class:`ValueError`.

Versions 1.1 and 1.2 of YAML read some plain words differently. A value that either version reads as
a number is a number: ``9e-1``, ``0o17``, ``1_000``. Where a reader could mean two things, the value
is refused with the form to use: ``off`` (false in 1.1, text in 1.2), ``017`` (15 or 17), ``1:30``
(90 or text). So are infinity and NaN, which JSON lacks. Dates are text. Sources:
https://yaml.org/type/ and https://yaml.org/spec/1.2.2/.
"""

from __future__ import annotations

import math
import re
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import yaml

from cradle_lib.files import read_bounded

#: Longest document, in characters.
LONGEST: Final = 1_000_000
#: Most values of a document, those that aliases repeat counted each time.
MOST: Final = 100_000
#: Deepest nesting.
DEEPEST: Final = 50
_LONGEST_REASON: Final = 200
_AMBIGUOUS: Final = "!ambiguous"

_DECIMAL: Final = re.compile(r"[-+]?[0-9][0-9_]*")
# Digits after the prefix, which is what `int` reads with base 0.
_PREFIXED: Final = re.compile(r"[-+]?0(b[01]|o[0-7]|x[0-9a-fA-F])[0-9a-fA-F_]*")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9][0-9_]*|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_SEXAGESIMAL: Final = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_BOOLEAN: Final = re.compile(r"true|True|TRUE|false|False|FALSE")
_BOOLEAN_WORD: Final = re.compile(r"y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF")


class AmbiguousError(ValueError):
    """A plain value that readers of YAML or JSON disagree about; the message has what to write."""


def read(path: Path) -> Any:
    """Reads the one YAML document of a file in UTF-8, as :func:`load`.

    Raises:
        OSError: If the file can't be read or has more than four times :data:`LONGEST` bytes.
        ValueError: As :func:`load`, or if it is not UTF-8.
    """
    return load(read_bounded(path, 4 * LONGEST).decode())


def load(text: str) -> Any:
    """Reads one YAML document: plain values, lists and mappings; ``None`` for an empty one.

    Raises:
        ValueError: If it is not YAML, is too large or nested too deeply (aliases counted as what
            they stand for), holds a key twice in one mapping or a value that can't be read. The
            message is one line, with the place.
    """
    # A page asks for the registry a dozen times, and a tenth of a second is needed to read it.
    return deepcopy(_load(text))


@lru_cache(maxsize=8)
def _load(text: str) -> Any:
    if len(text) > LONGEST:
        raise ValueError(f"{len(text):,} characters, expected at most {LONGEST:,}")
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            return None
        _measure(root, {}, 0)
        return loader.construct_document(root)
    except RecursionError:
        raise ValueError(f"nested more than {DEEPEST} deep") from None
    except (yaml.YAMLError, ArithmeticError, AttributeError, LookupError, TypeError) as error:
        # All but the first come from a tag, such as `!!bool`, on what is no such value.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(reason[:_LONGEST_REASON]) from None
    except AmbiguousError:
        raise
    except ValueError as error:
        # A day 40 or a whole number of thousands of digits.
        raise ValueError(f"a value can't be read ({str(error)[:_LONGEST_REASON]})") from None


def _is_number(text: str) -> bool:
    return any(form.fullmatch(text) for form in (_DECIMAL, _PREFIXED, _FLOAT))


def _number(text: str) -> int | float:
    """Reads a number in a spelling of YAML 1.1 or 1.2.

    Raises:
        AmbiguousError: If the two versions read different numbers, or it is too large for a float.
    """
    digits = text.replace("_", "")
    if _PREFIXED.fullmatch(text):
        return int(digits, 0)
    if _DECIMAL.fullmatch(text):
        number = int(digits)
        sign, size = ("-", digits[1:]) if digits[0] == "-" else ("", digits.lstrip("+"))
        # Version 1.1 reads a leading zero as base 8, version 1.2 as base 10.
        if size[0] == "0" and set(size) <= set("01234567") and int(digits, 8) != number:
            other = f"{sign}0o{size.lstrip('0')}"
            raise AmbiguousError(
                f"{text} is {int(digits, 8)} in YAML 1.1 and {number} in YAML 1.2: write "
                f'{number}, {other}, or "{text}" for the text'
            )
        return number
    real = float(digits)
    if math.isinf(real):
        raise AmbiguousError(f'{text} is too large for a number: write "{text}" for the text')
    return real


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the readings of plain words that the module names."""

    # Resolvers are looked up by the first character of a word.
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as PyYAML declares it.

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Reads a mapping; a key of one letter is text, such as ``n`` in the options of a call."""
        for key, _ in node.value:
            if key.tag == _AMBIGUOUS and len(key.value) == 1:
                key.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep)

    def _read_number(self, node: yaml.ScalarNode) -> int | float:
        text = str(self.construct_scalar(node))
        if not _is_number(text):
            raise yaml.MarkedYAMLError(problem=_at(f"{text!r:.60} is no number", node))
        try:
            return _number(text)
        except AmbiguousError as error:
            raise AmbiguousError(_at(str(error), node)) from None

    def _refuse(self, node: yaml.ScalarNode) -> Any:
        text = str(self.construct_scalar(node))
        if _SEXAGESIMAL.fullmatch(text):
            problem = f'{text} is a number of base 60 in YAML 1.1: write "{text}" for the text'
        elif _NOT_FINITE.fullmatch(text):
            problem = f'{text} can\'t be sent or stored as a number: write "{text}" for the text'
        else:
            value = "true" if text.lower() in ("y", "yes", "on") else "false"
            problem = (
                f'{text} is {value} in YAML 1.1 and text in YAML 1.2: write {value}, or "{text}"'
            )
        raise AmbiguousError(_at(problem, node))


for _tag, _form, _first in (
    ("tag:yaml.org,2002:bool", _BOOLEAN, "tTfF"),
    ("tag:yaml.org,2002:null", re.compile(r"~|null|Null|NULL|"), ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:merge", re.compile("<<"), "<"),
    ("!number", _DECIMAL, "-+0123456789"),
    ("!number", _PREFIXED, "-+0"),
    ("!number", _FLOAT, "-+.0123456789"),
    (_AMBIGUOUS, _NOT_FINITE, "-+."),
    (_AMBIGUOUS, _SEXAGESIMAL, "-+0123456789"),
    (_AMBIGUOUS, _BOOLEAN_WORD, "yYnNoO"),
):
    _Loader.add_implicit_resolver(_tag, re.compile(rf"(?:{_form.pattern})$"), list(_first))
for _tag in ("!number", "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
    _Loader.add_constructor(_tag, _Loader._read_number)
_Loader.add_constructor(_AMBIGUOUS, _Loader._refuse)


def _measure(node: yaml.Node, sizes: dict[int, int], depth: int) -> int:
    """Counts the values under a node; refuses keys that stand twice, and documents too large."""
    if depth >= DEEPEST and isinstance(node, yaml.CollectionNode):
        # An alias of a list within itself ends here as well.
        raise yaml.MarkedYAMLError(problem=_at(f"nested more than {DEEPEST} deep", node))
    if id(node) in sizes:
        return sizes[id(node)]
    parts: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        keys: set[tuple[str, str]] = set()
        for key, value in node.value:
            name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else None
            if name in keys:
                raise yaml.MarkedYAMLError(problem=_at(f"{key.value!r:.60} stands twice", key))
            if name is not None:
                keys.add(name)
            parts += [key, value]
    elif isinstance(node, yaml.SequenceNode):
        parts = node.value
    size = 1
    for part in parts:
        size += _measure(part, sizes, depth + 1)
        if size > MOST:
            raise yaml.MarkedYAMLError(problem=_at(f"more than {MOST:,} values", node))
    sizes[id(node)] = size
    return size


def _at(problem: str, node: yaml.Node) -> str:
    return f"{problem} (line {node.start_mark.line + 1})"
