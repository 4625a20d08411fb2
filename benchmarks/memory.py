"""How much memory a process took at its peak."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_memory() -> float:
    """Gives this process' peak resident memory in MB.

    On Linux from ``/proc``: what ``getrusage`` calls the peak of a process is that of the one
    which started it, if that was larger.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts in bytes, others in kibibytes.
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6
