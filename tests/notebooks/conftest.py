"""Fixtures: forty dialogues and runs over them."""

from ..forty_dialogues import corpus, make_run, runs

__all__ = ["corpus", "make_run", "runs"]
