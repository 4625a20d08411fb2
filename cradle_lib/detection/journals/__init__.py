"""Journals: where answers are kept, read again, and become predictions."""
