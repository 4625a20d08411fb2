"""Settings of all tests."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

from cradle_lib.display.notice import PAGE

# Each worker has a core. Threads of two workers that wait for each other on busy cores took ten
# times as long; what a test starts inherits it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Nothing here depends on how busy the machine is.
settings.register_profile(
    "cradle",
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("cradle")


@pytest.fixture(autouse=True, scope="module")
def unwalked() -> None:
    """Takes what is there for good out of the collector's way.

    Some libraries collect garbage at each call, which walks through every module of a worker.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def without_page() -> None:
    """Forgets the corpus of the page that a test before showed."""
    PAGE.corpus, PAGE.simulated = None, False
