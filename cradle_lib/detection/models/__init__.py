"""Models: the registry, the fields of an entry, and the interface of engines."""
