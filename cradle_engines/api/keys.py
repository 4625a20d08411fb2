"""API keys: read from the environment or a file ``.env``, and removed from texts."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from dotenv import dotenv_values

from cradle_lib.detection.models.model import Model
from cradle_lib.errors import EngineError

DOTENV: Final = ".env"
# Any part of a key with at least this many characters is removed from texts.
_PIECE: Final = 8
# Shorter values are placeholders that local servers ignore, such as "none" or "EMPTY".
_SHORTEST: Final = 6


def find_key(model: Model) -> str:
    """Looks up a model's key in the environment, or else in ``.env``; empty if it needs none.

    Raises:
        EngineError: If the key is missing, or contains a character that keys never have.
    """
    if model.key is None:
        return ""
    name = model.key.variable
    try:
        # No interpolation, because a key may contain a dollar sign.
        stored = dotenv_values(Path.cwd() / DOTENV, interpolate=False)
    except UnicodeDecodeError:
        raise EngineError(f"{DOTENV} is not UTF-8. Save it as UTF-8.") from None
    key = (os.environ.get(name) or stored.get(name) or "").strip()
    hint = f" Get a key at {model.key.url}." if model.key.url else ""
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        problem = "contains a character that keys never have" if key else "is not set"
        raise EngineError(
            f"{model.name}: the environment variable {name} {problem}, here or in a file "
            f"{DOTENV}.{hint}"
        )
    return key


class Redactor:
    """Replaces a key, or a part of it, in texts by ``[key]``, ignoring case.

    Args:
        key: The key. No eight consecutive characters of it remain in a text. A shorter key is
            replaced as a whole; a value of fewer than six characters is not a key and stays.
    """

    def __init__(self, key: str) -> None:
        size = min(_PIECE, len(key))
        pieces = {re.escape(key[at : at + size]) for at in range(len(key) - size + 1)}
        # A piece, with the characters after it that may belong to the key.
        pattern = rf"(?:{'|'.join(pieces)})[\w+/=-]*" if len(key) >= _SHORTEST else r"(?!)"
        self._pieces = re.compile(pattern, re.IGNORECASE)

    def __call__(self, text: str) -> str:
        """Gives the text without the key."""
        return self._pieces.sub("[key]", text)
