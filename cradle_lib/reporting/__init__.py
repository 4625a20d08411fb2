"""Formats what was computed, and binds it into a book; computes nothing."""
