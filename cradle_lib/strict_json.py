"""Strict JSON: rejects duplicate keys, where Python's parser keeps the last value."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections import Counter
from typing import Any, Final


def loads(text: str | bytes) -> Any:
    """Reads a JSON document; bytes are UTF-8.

    Raises:
        ValueError: If it is not JSON (a :class:`json.JSONDecodeError` with the position), not
            UTF-8, has a duplicate key in an object, or is nested too deeply.
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
        duplicate = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{duplicate!r:.60} appears twice in an object")
    return found


# Shared: `json.loads` would create a decoder for each of the thousands of lines of a journal.
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object)
