"""Servers of one's own: which model they serve, and which of several a dialogue stays at."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any

from cradle_lib.detection.api.replies import look
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.session import Prompt
from cradle_lib.errors import EngineError


async def served_names(client: Any, address: str, seconds: float) -> list[str]:
    """Asks a server for the names of its models.

    Args:
        client: The SDK's client.
        address: Where they are listed.
        seconds: How long to wait.

    Returns:
        The names; none if it has no such list, or can't be reached: then its questions say so.
    """
    try:
        async with asyncio.timeout(seconds):
            reply = await client.get(address, cast_to=object, options={"follow_redirects": False})
    except Exception:  # Whatever an SDK makes of a server that has no such list.
        return []
    found = look(reply, "data")
    names = [look(each, "id") for each in found] if isinstance(found, list) else []
    return [name for name in names if isinstance(name, str)]


def require_served(model: Model, names: Sequence[str], place: str) -> None:
    """Refuses a server that serves other models only.

    Raises:
        EngineError: If it lists models, and this one is not among them.
    """
    if names and model.weights not in names:
        raise EngineError(
            f"{place} serves {', '.join(names[:5])}, and {model.id} asks for {model.weights}. "
            f"Start it with --served-model-name {model.weights} (`cradle serve-command`), or ask "
            "for the model that it serves."
        )


def affinity(model: Model, prompt: Prompt) -> dict[str, str]:
    """Gives the header that names a dialogue to a router before several servers.

    The router sends what has the same name to the same server, in whose cache the beginning of the
    question lies. The name can't be read.

    Returns:
        The header; empty if the entry asks for none.
    """
    header = model.caching.affinity
    if header is None:
        return {}
    return {header: hashlib.sha256(prompt.dialogue.encode()).hexdigest()[:16]}
