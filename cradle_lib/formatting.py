"""Formats amounts of money, and makes file names from titles."""

import re


def dollars(amount: float) -> str:
    """Formats an amount, below $1 with two significant digits: ``$12.30``, ``$0.0042``."""
    return f"${amount:,.2f}" if amount >= 1 or amount == 0 else f"${amount:.2g}"


def slug(title: str) -> str:
    """Makes a file name from the first eight words of a title."""
    words = re.findall(r"[a-z0-9]+", title.lower())
    return "-".join(words[:8]) or "table"
