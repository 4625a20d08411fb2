"""A sentence in place of a table or figure for which a corpus lacks something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.corpus.gaps import Need, gap
from cradle_lib.display.notice import Notice

if TYPE_CHECKING:
    from cradle_lib.display.run import Run


def lacking(shown: Corpus | Sequence[Run], need: Need, missing: str) -> Notice | None:
    """Says what a page can't show because of what its corpus lacks.

    Args:
        shown: The corpus; or the runs, of which one over most dialogues decides.
        need: What the table or figure needs; see :func:`cradle_lib.corpus.gaps.gap`.
        missing: What there is not, such as ``there is no onset to look at``.

    Returns:
        The notice; ``None`` if the corpus has what is needed.
    """
    if not isinstance(shown, Corpus):
        shown = max(shown, key=lambda run: len(run.corpus)).corpus
    why = gap(shown, need)
    return None if why is None else Notice(f"{why}: {missing}.")
