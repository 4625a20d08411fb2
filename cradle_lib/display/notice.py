"""Sentences on a page: its headline, and notices in place of results that can't be shown.

:func:`.banner` sets :data:`PAGE`, a global like the current figure of ``pyplot``. A process
executes one notebook, which makes one page, so headlines, tables and downloads can read the
page's corpus from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from cradle_lib.arguments import check_fields, checked
from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.corpus.needs import Need, unmet
from cradle_lib.display.cells import with_code


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence in place of a result: what is missing, and how to get it.

    Attributes:
        message: Plain text, never markup; text between backticks is shown as code.
    """

    message: str

    def __post_init__(self) -> None:
        """Rejects anything but text."""
        check_fields(self)

    def _repr_html_(self) -> str:
        return f'<div class="cradle-note" role="note"><p>{with_code(self.message)}</p></div>'

    def __repr__(self) -> str:
        return self.message


@dataclass(slots=True)
class Page:
    """The current page.

    Attributes:
        corpus: Its corpus; ``None`` before the banner.
        model_annotators: Whether its annotators are language models.
        files: Number of its downloads so far.
    """

    corpus: Corpus | None = None
    model_annotators: bool = False
    files: int = 0


PAGE = Page()


def lacks(needs: Need | None) -> str | None:
    """Explains why the page's corpus can't give a result; ``None`` if it can."""
    if needs is None or PAGE.corpus is None:
        return None
    why = unmet(PAGE.corpus, needs)
    return None if why is None else f"{why}."


def with_origin(frame: pd.DataFrame) -> pd.DataFrame:
    """Adds the columns ``corpus`` and ``fingerprint``, and ``annotators`` if they are models.

    Existing columns with these names are kept.
    """
    if PAGE.corpus is None:
        return frame
    origin = {
        "corpus": PAGE.corpus.name,
        "fingerprint": PAGE.corpus.fingerprint,
    }
    origin |= {"annotators": "language models"} if PAGE.model_annotators else {}
    return frame.assign(**{name: x for name, x in origin.items() if name not in frame})


@checked
def finding(sentence: str, needs: Need | None = None) -> Notice:
    """Makes the headline of a page; on the surrogate it begins with "On the surrogate corpus,".

    Args:
        sentence: Begins with a lower-case letter, unless its first word is a name. If it is empty,
            the headline says that there is no result.
        needs: What the result needs of the corpus: see :func:`cradle_lib.corpus.needs.unmet`.
            If the corpus lacks it, the headline says so.

    Returns:
        The headline.
    """
    if missing := lacks(needs):
        return Notice(missing)
    if not sentence:
        return Notice("This page has no result for this corpus.")
    if PAGE.corpus is not None and PAGE.corpus.synthetic:
        who = " with language models as annotators," * PAGE.model_annotators
        return Notice(f"On the surrogate corpus,{who} {sentence}")
    first = sentence.split(" ", 1)[0]
    return Notice(sentence[:1].upper() + sentence[1:] if first.isalpha() else sentence)
