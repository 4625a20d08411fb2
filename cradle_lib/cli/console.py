"""Where commands write: results to standard output, everything else to standard error.

Neither console knows markup: a name or a message with brackets is printed as it is.
"""

from __future__ import annotations

from typing import Final

from rich.console import Console

out: Final = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
err: Final = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
