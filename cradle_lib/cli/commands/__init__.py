"""Commands, one module for each group."""
