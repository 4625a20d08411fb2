"""The rendered site: formulas, and large figures and downloads as separate files."""
