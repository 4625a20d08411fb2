"""Writers: the phrase bank that ships, and language models."""
