"""Validators: checks of a dialogue's form and content."""
