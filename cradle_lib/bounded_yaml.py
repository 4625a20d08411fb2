"""YAML that people write by hand, read within bounds.

A few lines of YAML can stand for gigabytes: an alias repeats what it names, and aliases of
aliases multiply. Two equal keys silently become the last of them, and a tag in the text calls
Python's own constructors with whatever stands behind it. Here a document has a size, a depth and
no key twice; everything else is one :class:`ValueError`.
"""

from __future__ import annotations

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
        loader = yaml.SafeLoader(text)
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
    except ValueError as error:
        # A day 40 or a whole number of thousands of digits.
        raise ValueError(f"a value can't be read ({str(error)[:_LONGEST_REASON]})") from None


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
