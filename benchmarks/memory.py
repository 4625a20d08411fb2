"""Peak memory of a process."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_memory() -> float:
    """Returns the peak resident memory of this process in MB.

    Reads ``/proc`` on Linux, because ``getrusage`` returns the peak of the parent process there if
    that was larger.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # The unit is bytes on macOS, kibibytes elsewhere.
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6
