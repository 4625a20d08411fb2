"""Counts the cases, so that a run says how much it tried."""

from __future__ import annotations

from typing import Any

from .attack import TRIED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if TRIED:
        terminalreporter.section("hostile cases")
        for name, ends in sorted(TRIED.items()):
            told = ", ".join(f"{count:,} {end}" for end, count in sorted(ends.items()))
            terminalreporter.write_line(f"{name}: {told}")
        total = sum(sum(ends.values()) for ends in TRIED.values())
        terminalreporter.write_line(f"in all: {total:,}")
