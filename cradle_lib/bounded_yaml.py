"""Reads YAML that people write by hand: no duplicate keys, no Python objects, bounded size.

Aliases of aliases multiply, so that a few lines of YAML can stand for gigabytes; PyYAML keeps the
last of two equal keys. Both are refused with a :class:`ValueError` of one line.

Versions 1.1 and 1.2 of YAML read some plain words differently. Spellings of numbers such as
``9e-1``, ``0o17`` and ``1_000`` are numbers. A word that readers disagree about is refused: ``off``
(false in 1.1, text in 1.2), a number with a leading zero (``017`` is 15 or 17) and ``1:30`` (90 or
text). So are infinity and NaN, which JSON lacks. Dates are text. Sources: https://yaml.org/type/
and https://yaml.org/spec/1.2.2/.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
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
_AMBIGUOUS: Final = "!ambiguous"

_WORD: Final = re.compile(r"y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF")
_UNCLEAR_NUMBER: Final = re.compile(
    r"[-+]?(\.(inf|Inf|INF)|0[0-9_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)|\.(nan|NaN|NAN)"
)
_INTEGER: Final = re.compile(
    r"[-+]?(0|[1-9][0-9_]*|0b[01][01_]*|0o[0-7][0-7_]*|0x[0-9a-fA-F][0-9a-fA-F_]*)"
)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9][0-9_]*|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")


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
        for number, node in enumerate(_walk(root)):
            if number == MOST:
                raise ValueError(_at(f"more than {MOST:,} values", node))
            _require_distinct_keys(node)
        return loader.construct_document(root)
    except AmbiguousError:
        raise
    except RecursionError:
        raise ValueError(f"nested more than {DEEPEST} deep") from None
    except Exception as error:  # A tag such as `!!bool` on another value raises almost anything.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(reason[:200]) from None


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

    def read_number(self, node: yaml.ScalarNode) -> int | float:
        """Reads a number in a spelling of YAML 1.1 or 1.2."""
        text = str(self.construct_scalar(node))
        digits = text.replace("_", "")
        try:
            number = int(digits, 0) if _INTEGER.fullmatch(text) else float(digits)
        except ValueError:
            raise ValueError(_at(f"{text!r:.60} can't be read as a number", node)) from None
        return self.refuse(node) if number in (math.inf, -math.inf) else number

    def refuse(self, node: yaml.ScalarNode) -> Any:
        """Refuses an ambiguous word, with what to write instead."""
        text = str(self.construct_scalar(node))
        use = "a finite decimal number"
        if _WORD.fullmatch(text):
            use = "true" if text.lower() in ("y", "yes", "on") else "false"
        problem = f'{text} means different things to different readers: write {use}, or "{text}"'
        raise AmbiguousError(_at(f"{problem} for the text", node))


for _tag, _form, _first in (
    ("tag:yaml.org,2002:bool", re.compile("true|True|TRUE|false|False|FALSE"), "tTfF"),
    ("tag:yaml.org,2002:null", re.compile("~|null|Null|NULL|"), ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:merge", re.compile("<<"), "<"),
    (_AMBIGUOUS, _WORD, "yYnNoO"),
    (_AMBIGUOUS, _UNCLEAR_NUMBER, "-+.0123456789"),
    ("!number", _INTEGER, "-+0123456789"),
    ("!number", _FLOAT, "-+.0123456789"),
):
    _Loader.add_implicit_resolver(_tag, re.compile(rf"(?:{_form.pattern})$"), list(_first))
for _tag in ("!number", "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
    _Loader.add_constructor(_tag, _Loader.read_number)
_Loader.add_constructor(_AMBIGUOUS, _Loader.refuse)


def _walk(node: yaml.Node, depth: int = 0) -> Iterator[yaml.Node]:
    """Gives every node of a document; an alias gives all that it stands for."""
    if depth >= DEEPEST and isinstance(node, yaml.CollectionNode):
        # An alias of a list within itself ends here as well.
        raise ValueError(_at(f"nested more than {DEEPEST} deep", node))
    yield node
    if isinstance(node, yaml.MappingNode):
        for pair in node.value:
            for part in pair:
                yield from _walk(part, depth + 1)
    elif isinstance(node, yaml.SequenceNode):
        for part in node.value:
            yield from _walk(part, depth + 1)


def _require_distinct_keys(node: yaml.Node) -> None:
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise ValueError(_at(f"{key.value!r:.60} stands twice", key))
                seen.add((key.tag, key.value))


def _at(problem: str, node: yaml.Node) -> str:
    return f"{problem} (line {node.start_mark.line + 1})"
