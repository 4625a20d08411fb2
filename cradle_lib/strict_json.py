"""Strict JSON: rejects duplicate keys and nesting deeper than fifty levels.

Python's reader keeps the last of two equal keys, and accepts a depth that the code after it can't
walk.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

#: Deepest nesting that is read; the files of this project need six levels.
DEEPEST: Final = 50


def loads(text: str | bytes) -> Any:
    """Reads a JSON document; bytes are UTF-8.

    Raises:
        ValueError: If it is not JSON (a :class:`json.JSONDecodeError`, which knows the place), not
            UTF-8, holds a key twice in one object, a whole number of more digits than Python
            reads (4,300), or lists and objects nested more than :data:`DEEPEST` deep.
    """
    document = text if isinstance(text, str) else text.decode("utf-8-sig")
    try:
        content = _DECODER.decode(document)
        # Most documents have fewer brackets than the limit and need no look.
        deep = document.count("[") + document.count("{") > DEEPEST and _depth(content) > DEEPEST
    except RecursionError:
        deep = True
    if deep:
        raise ValueError(f"nested more than {DEEPEST} deep")
    return content


def _depth(value: Any) -> int:
    if not isinstance(value, list | dict):
        return 0
    parts = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, parts), default=0)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{twice!r:.60} stands twice in an object")
    return found


# One for all: a journal has thousands of lines, and `json.loads` would make one for each.
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object)
