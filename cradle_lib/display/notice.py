"""A sentence in place of something that a page can't show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cradle_lib.corpus import Corpus
from cradle_lib.detection.journals.predictions import Predictions
from cradle_lib.display.cells import with_code
from cradle_lib.scoring.core.gaps import Need, gap


@dataclass(frozen=True, slots=True)
class Notice:
    """Says what is missing, and how to get it.

    Attributes:
        message: Plain text, never markup; what stands between backticks is shown as code.
    """

    message: str

    def _repr_html_(self) -> str:
        return f'<div class="cradle-note" role="note"><p>{with_code(self.message)}</p></div>'

    def __repr__(self) -> str:
        """The message alone."""
        return self.message


def lacking(shown: Corpus | Sequence[Predictions], need: Need, missing: str) -> Notice | None:
    """Says what a page can't show because of what its corpus lacks.

    Args:
        shown: The corpus; or the runs, of which one over most dialogues decides.
        need: What the table or figure needs; see :func:`cradle_lib.scoring.core.gaps.gap`.
        missing: What there is not, such as ``there is no onset to look at``.

    Returns:
        The notice; ``None`` if the corpus has what is needed.
    """
    if not isinstance(shown, Corpus):
        shown = max(shown, key=lambda run: len(run.corpus)).corpus
    why = gap(shown, need)
    return None if why is None else Notice(f"{why}: {missing}.")
