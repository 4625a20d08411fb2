"""API keys: read from the environment or a file ``.env``, and removed from texts."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Final
from urllib.parse import quote

from dotenv import dotenv_values

from cradle_lib.detection.model import Model
from cradle_lib.errors import EngineError

DOTENV: Final = ".env"
# Characters of a key, or of a form of it, that are never shown in a row.
_PIECE: Final = 8
# What is shorter is no key but a word in the place of one, such as "none" or "EMPTY".
_SHORTEST: Final = 6


def find_key(model: Model) -> str:
    """Looks up a model's key in the environment, or else in ``.env``; empty if it needs none.

    Raises:
        EngineError: If the key is missing, or can't be one; one line, without the key.
    """
    if model.key is None:
        return ""
    name = model.key.variable
    key = os.environ.get(name, "").strip() or (_dotenv().get(name) or "").strip()
    place = f" Get a key at {model.key.url}." if model.key.url else ""
    if not key:
        raise EngineError(
            f"{model.name}: the environment variable {name} is not set, here or in a file "
            f"{DOTENV}.{place}"
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise EngineError(
            f"{model.name}: the environment variable {name} holds a space or a character "
            f"that no key has. Copy the key again.{place}"
        )
    return key


def _dotenv() -> dict[str, str | None]:
    path = Path.cwd() / DOTENV
    try:
        # A dollar sign in a key is a dollar sign.
        return dotenv_values(path, interpolate=False)
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(f"{path}: can't be read ({type(error).__name__})") from None


class Redactor:
    """Takes a key out of texts, also a part of it, its form in addresses and its Base64 form.

    Args:
        key: The key. Eight characters of it, or of one of its forms, are never left in a row, in
            upper or lower case. A key shorter than that is taken out whole. One of fewer than six
            characters stays, because it is no key.
    """

    def __init__(self, key: str) -> None:
        self._size = min(_PIECE, len(key))
        coded = base64.b64encode(key.encode()).decode()
        forms = (key, quote(key, safe=""), coded) if len(key) >= _SHORTEST else ()
        self._pieces = {
            form[at : at + self._size].lower()
            for form in forms
            for at in range(len(form) - self._size + 1)
        }

    def __call__(self, text: str) -> str:
        """Gives a text with ``[key]`` in the place of what belongs to the key."""
        if not self._pieces:
            return text
        kept, at, size = [], 0, self._size
        while at < len(text):
            end = at
            while text[end : end + size].lower() in self._pieces:
                end += 1
            kept.append("[key]" if end > at else text[at])
            at = end + size - 1 if end > at else at + 1
        return "".join(kept)
