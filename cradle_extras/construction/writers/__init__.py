"""Writers: the shipped phrase bank, and language models."""
