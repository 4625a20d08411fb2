"""Validators: what a dialogue must and must not be."""
