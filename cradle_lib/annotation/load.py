"""Loads the shipped annotations of the surrogate, or a table of other annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cradle_lib import paths
from cradle_lib.annotation.table import Annotations, read_annotations
from cradle_lib.arguments import checked
from cradle_lib.corpus.dialogue import Corpus

#: The surrogate's annotations as a table, with the content of the exports in the same folder.
SHIPPED: Final = paths.SURROGATE / "annotations" / "annotations.parquet"


@checked
def load_annotations(corpus: Corpus, annotations: str | Path = "surrogate") -> Annotations:
    """Loads annotations of a corpus.

    Args:
        corpus: The dialogues that were labelled.
        annotations: ``surrogate`` for the shipped ones, or a table that ``cradle annotate import``
            wrote.

    Returns:
        The annotations.

    Raises:
        CorpusError: If they can't be read, or were made on other dialogues.
    """
    return read_annotations(SHIPPED if annotations == "surrogate" else Path(annotations), corpus)
