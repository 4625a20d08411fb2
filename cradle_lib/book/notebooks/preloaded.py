"""What most pages import and load. Imported by the process whose copies the kernels are.

The imports take about three seconds, more than the cells of many pages.
"""

# ruff: noqa: F401
from __future__ import annotations

import gc
import os
from contextlib import suppress

from cradle_lib.book.notebooks.settings import ONE_THREAD, SETTINGS

# Before matplotlib and numpy are imported, which read their variables only then.
os.environ.update(SETTINGS)
os.environ.setdefault(*ONE_THREAD)

import seaborn

import cradle_lib.book.notebooks.kernel
import cradle_lib.detection.runs.find_runs
import cradle_lib.display.theme
import cradle_lib.scoring.evaluate
from cradle_lib.corpus import load
from cradle_lib.errors import CorpusError

for split in load.SPLIT_NAMES:
    with suppress(CorpusError):  # A page that needs the file says what is wrong.
        load.load_corpus("surrogate", split)

# Kernels need not search for garbage among all that was imported.
gc.freeze()
