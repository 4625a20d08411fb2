"""Strict JSON: rejects duplicate keys, of which Python's reader keeps the last."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections import Counter
from typing import Any, Final


def loads(text: str | bytes) -> Any:
    """Reads a JSON document; bytes are UTF-8.

    Raises:
        ValueError: If it is not JSON (a :class:`json.JSONDecodeError`, which knows the place), not
            UTF-8, has a key twice in one object, or is nested too deeply.
    """
    try:
        return _DECODER.decode(
            text if isinstance(text, str) else text.removeprefix(BOM_UTF8).decode()
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{twice!r:.60} appears twice in an object")
    return found


# One decoder for all: a journal has thousands of lines, and `json.loads` would make one for each.
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object)
