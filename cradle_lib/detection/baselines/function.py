"""A Python function as a model: it takes a prompt and returns the text of an answer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Final

from cradle_lib.detection.baselines.function_code import FunctionCode
from cradle_lib.detection.models.engine import Sequential, failure
from cradle_lib.detection.protocol.session import Answer, Prompt
from cradle_lib.errors import EngineError

_LAMBDA: Final = (lambda: None).__name__
# Dots stay, except those that would begin another part of a journal's name.
_NOT_IN_IDS: Final = re.compile(r"[^a-z0-9.]+|\.(?=history-|shard-)")


class Function(Sequential):
    """Calls a function with each :class:`~cradle_lib.detection.Prompt`.

    Its return value is parsed like a model's answer. If it raises an exception, the turn is
    ``failed`` with that reason, and the run continues; if it does not return text, the turn is
    ``unparsed``.

    Args:
        function: Takes a prompt, returns text: a function or another callable object.
        name: Display name; by default the function's own name.
        version: The author's version of the data and the weights that the function uses. Required
            if it uses a value that can't be compared, such as a trained model.

    Attributes:
        name: Display name.
        source: Its source without indentation; ``None`` if Python can't find it, or for another
            callable object.
        code: The checksum of the source and of the values that it uses
            (:class:`.FunctionCode`), and the version if there is one, such as
            ``sha256:0123456789ab version:2``.

    Raises:
        EngineError: If a version is needed and missing, if a file was changed after it was
            imported, or if there is no name that can be used.
    """

    kind = "baseline"

    def __init__(
        self,
        function: Callable[[Prompt], object],
        name: str | None = None,
        version: str | None = None,
    ) -> None:
        own = str(getattr(function, "__name__", type(function).__name__))
        if name is None and own == _LAMBDA:
            raise EngineError("a lambda has no name for its run. Give `name=`.")
        self.name = own.lstrip("_") if name is None else name
        if not id_of(self.name):
            raise EngineError(f"{self.name!r} has no letter or digit. Give another `name=`.")
        read = FunctionCode(function)
        self.source = read.source
        if read.unknown and version is None:
            raise EngineError(
                f"{self.name} uses {', '.join(read.unknown[:3])}, which can't be compared, so a "
                "later change would go unnoticed. Give `version=`, and another one after a change."
            )
        parts = []
        if read.text:
            parts.append(f"sha256:{hashlib.sha256(read.text.encode()).hexdigest()[:12]}")
        if version is not None:
            parts.append(f"version:{version}")
        self.code = " ".join(parts)
        self._function = function

    def reply(self, prompt: Prompt) -> Answer:
        """Calls the function. Any exception, even a :class:`.CradleError`, fails the turn."""
        try:
            # Any return value is accepted: one that is not text is unparsed.
            return Answer(self._function(prompt))  # type: ignore[arg-type]
        except Exception as error:
            return failure(error)


def id_of(name: str) -> str:
    """Converts a name to an id as in ``models.yml``; empty if no character can be kept."""
    parts = (part.strip(".") for part in _NOT_IN_IDS.split(name.lower()))
    return "-".join(filter(None, parts))
