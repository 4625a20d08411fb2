"""The surrogate corpus: written by this project, synthetic, mild, CC BY 4.0.

It has the published counts of the real release and none of its text. It exists so that
everything runs; a score on it says nothing about a model's worth.
"""

from __future__ import annotations

from cradle_lib.corpus.surrogate.build import NOTICE, build_surrogate

__all__ = ["NOTICE", "build_surrogate"]
