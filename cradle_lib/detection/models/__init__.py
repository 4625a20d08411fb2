"""Models: entries of the registry, and specs that name one without an entry."""
