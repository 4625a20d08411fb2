"""Annotations by name: those that ship with the surrogate, or a table of one's own.

The shipped ones are stored as Label Studio exports, one for each person and round, so that reading
them is the same work as reading one's own. They are simulated; ``tools/annotations`` made them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cradle_lib import paths
from cradle_lib.annotation.exports import read_exports
from cradle_lib.annotation.study import Study
from cradle_lib.annotation.table import Annotations, read_annotations
from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.errors import AnnotationError

SHIPPED: Final = paths.SURROGATE / "annotations"


def load_annotations(corpus: Corpus, annotations: str | Path = "surrogate") -> Annotations:
    """Loads annotations of a corpus.

    Args:
        corpus: The dialogues that were labelled.
        annotations: ``surrogate`` for those that ship, or a table that ``cradle annotate
            import`` wrote.

    Returns:
        The annotations.

    Raises:
        AnnotationError: If they can't be read, or were made on other dialogues.
    """
    if annotations == "surrogate":
        if not SHIPPED.is_dir():
            raise AnnotationError(
                f"{paths.shown(SHIPPED)}: the surrogate's annotations come with the source "
                "distribution, not with a wheel. Unpack it, and start the command there."
            )
        study = Study.load(SHIPPED / "study.json")
        return read_exports(sorted(SHIPPED.glob("*.json.gz")), study, corpus)
    return read_annotations(Path(annotations), corpus)
