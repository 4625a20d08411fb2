"""Models whose weights are computed on this machine."""
