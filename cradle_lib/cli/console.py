"""Where commands write: results to standard output, everything else to standard error."""

from __future__ import annotations

from typing import Final

from rich.console import Console

out: Final = Console(highlight=False, soft_wrap=True)
err: Final = Console(stderr=True, highlight=False, soft_wrap=True)
