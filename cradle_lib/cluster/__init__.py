"""Commands as tasks of a cluster, or as processes of this machine: submitted, watched, repeated."""
