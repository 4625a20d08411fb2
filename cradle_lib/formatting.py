"""Formats amounts of money."""


def dollars(amount: float) -> str:
    """Formats an amount, below $1 with two significant digits: ``$12.30``, ``$0.0042``."""
    return f"${amount:,.2f}" if amount >= 1 or amount == 0 else f"${amount:.2g}"
