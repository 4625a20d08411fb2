from __future__ import annotations

from collections.abc import Callable

import pytest

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions

from . import made_runs


@pytest.fixture(scope="session")
def make_corpus() -> Callable[..., Corpus]:
    """Builds a corpus from rows."""
    return made_runs.make_corpus


@pytest.fixture(scope="session")
def make_predictions() -> Callable[..., Predictions]:
    """Builds the predictions of a run."""
    return made_runs.make_predictions
