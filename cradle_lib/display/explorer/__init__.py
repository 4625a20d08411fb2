"""The explorer: every dialogue of a corpus with what each system predicted, turn by turn."""
