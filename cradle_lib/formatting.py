"""Amounts of money as text, and titles as file names."""

import re


def dollars(amount: float) -> str:
    """Writes an amount so that small ones can be told apart: ``$12.30``, ``$0.0042``."""
    return f"${amount:,.2f}" if amount >= 1 or amount == 0 else f"${amount:.2g}"


def slug(title: str) -> str:
    """Makes a file name of the first words of a title."""
    words = re.findall(r"[a-z0-9]+", title.lower())
    return "-".join(words[:8]) or "table"
