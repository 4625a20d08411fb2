"""The forty dialogues and their runs."""

from ..forty_dialogues import corpus, make_run, runs

__all__ = ["corpus", "make_run", "runs"]
