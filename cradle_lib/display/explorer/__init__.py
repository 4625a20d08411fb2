"""The explorer: every dialogue of a corpus with what each system tagged, turn by turn."""
