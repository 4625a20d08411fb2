"""The wave engine: many dialogues advance together, and no token is computed twice."""
