"""Environment variables of all kernels."""

from __future__ import annotations

import os
from typing import Final

#: Whatever the user has set: the backend that makes figures part of the page, and an empty file.
SETTINGS: Final = {
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "MATPLOTLIBRC": os.devnull,
}
#: Unless the user has set it. A page took six times as long while others had threads on each core.
ONE_THREAD: Final = ("OMP_NUM_THREADS", "1")
