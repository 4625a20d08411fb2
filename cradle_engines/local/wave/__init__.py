"""The wave engine: runs many dialogues in one batch, and computes shared tokens only once."""
