"""The annotations that ship with the surrogate: simulated once, stored, and tested to be so."""
