"""The fixtures of a finished study, for the tests of Label Studio."""

from .finished_study import annotations, corpus, exports, finished, ran, run, study, written

__all__ = ["annotations", "corpus", "exports", "finished", "ran", "run", "study", "written"]
