"""Settings and fixtures of all tests."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

from cradle_lib.display.notice import PAGE

# One thread, because each worker has one core. With more threads, workers wait for each other and
# are ten times slower. Processes started by tests inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# No deadline, so that no test depends on the load of the machine.
settings.register_profile(
    "cradle",
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("cradle")


@pytest.fixture(autouse=True, scope="module")
def freeze_imported_modules() -> None:
    """Excludes imported modules from garbage collection.

    Some libraries collect garbage at each call, which would traverse all modules of a worker.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def reset_page() -> None:
    """Resets the global state of the page that an earlier test showed."""
    PAGE.corpus, PAGE.model_annotators = None, False
