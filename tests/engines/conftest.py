"""The fixtures of the tests of detection, for the tests of engines."""

from ..detection.conftest import always_none, api, corpus, home

__all__ = ["always_none", "api", "corpus", "home"]
