"""Runs commands as jobs of a SLURM cluster, or as processes of this machine."""
