"""JSON of which nothing is lost and by which nothing is broken.

Python's reader keeps the last of two equal keys without a word, and takes whatever depth fits
on the stack, which the code after it then can't walk. Here both are refused.
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
    whole = text if isinstance(text, str) else text.decode("utf-8-sig")
    try:
        content = _DECODER.decode(whole)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    # A quick look first: most documents have fewer brackets than the limit.
    if whole.count("[") + whole.count("{") > DEEPEST:
        _require_shallow(content)
    return content


_TOO_DEEP: Final = f"nested more than {DEEPEST} deep"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{twice!r:.60} stands twice in an object")
    return found


# One for all: a journal has thousands of lines, and `json.loads` would make one for each.
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object)


def _require_shallow(content: Any) -> None:
    level = [content]
    for _ in range(DEEPEST):
        level = [
            part
            for whole in level
            if isinstance(whole, list | dict)
            for part in (whole.values() if isinstance(whole, dict) else whole)
            if isinstance(part, list | dict)
        ]
        if not level:
            return
    raise ValueError(_TOO_DEEP)
