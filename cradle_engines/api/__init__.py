"""Models behind an API."""
