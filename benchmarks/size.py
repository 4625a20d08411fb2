"""The size of the benchmarks: full, or small, to test in about a minute that all of them run.

A small run takes tiny data and a tiny random model, judges no target, and saves nothing.
"""

from __future__ import annotations

import os
import sys
import tempfile
from atexit import register
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

from cradle_lib.detection import Model

_VARIABLE: Final = "CRADLE_SMALL_BENCHMARKS"
_Size = TypeVar("_Size")

#: Whether the run is small, as with ``python -m benchmarks --small``.
SMALL: Final = "--small" in sys.argv or _VARIABLE in os.environ
if SMALL:
    # Processes that a benchmark starts are small, too.
    os.environ[_VARIABLE] = "1"


def sized(full: _Size, small: _Size) -> _Size:
    """Chooses the value for a full or a small run."""
    return small if SMALL else full


@cache
def tiny_model() -> Model:
    """Makes a tiny random model; its files are removed when this process ends."""
    from tests.engines.local.tiny_models import make_model, make_weights

    folder = tempfile.TemporaryDirectory()
    register(folder.cleanup)
    weights = make_weights(Path(folder.name) / "tiny", context=4096)
    return make_model(weights, "wave").model_copy(update={"prompt": "brief"})
