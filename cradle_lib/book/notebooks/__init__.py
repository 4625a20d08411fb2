"""Notebooks: read, executed in a kernel of their own, and what they put out."""
