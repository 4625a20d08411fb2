"""Amounts of money as text."""


def dollars(amount: float) -> str:
    """Writes an amount so that small ones can be told apart: ``$12.30``, ``$0.0042``."""
    return f"${amount:,.2f}" if amount >= 1 or amount == 0 else f"${amount:.2g}"
