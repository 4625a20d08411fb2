"""Commands, one module a group."""
