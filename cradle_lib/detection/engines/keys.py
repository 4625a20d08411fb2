"""Where keys come from: the environment, or a file ``.env`` in the working directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from dotenv import dotenv_values

from cradle_lib.detection.registry import Model
from cradle_lib.errors import EngineError

DOTENV: Final = ".env"


def find_key(model: Model) -> str:
    """Looks up a model's key.

    Args:
        model: An entry of the registry.

    Returns:
        The key: the environment's, or else the one in ``.env``. An empty text for a
        model that needs none.

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
