"""The corpus of the page at hand: :func:`.banner` sets it, headlines and downloads name it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.display.notice import Notice

if TYPE_CHECKING:
    from cradle_lib.corpus.needs import Need


@dataclass(slots=True)
class Origin:
    """What the numbers of a page rest on.

    Attributes:
        corpus: The corpus; ``None`` before the page has a banner.
        simulated: Whether its annotators are simulated.
    """

    corpus: Corpus | None = None
    simulated: bool = False

    def marked(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Adds the columns ``corpus`` and ``fingerprint``, and ``simulated`` where it applies.

        A column of the frame that has one of these names stays as it is.
        """
        if self.corpus is None:
            return frame
        about: dict[str, str | bool] = {
            "corpus": self.corpus.name,
            "fingerprint": self.corpus.fingerprint,
        }
        about |= {"simulated": True} if self.simulated else {}
        return frame.assign(**{name: x for name, x in about.items() if name not in frame})

    def lacks(self, needs: Need | None) -> str | None:
        """Says that the corpus lacks what a result needs; ``None`` if it has it."""
        if needs is None or self.corpus is None:
            return None
        # Imported here, because some pages need nothing.
        from cradle_lib.corpus.needs import unmet

        why = unmet(self.corpus, needs)
        return None if why is None else f"{why}."


#: A notebook is one process, and shows one page.
PAGE = Origin()


def finding(sentence: str, needs: Need | None = None) -> Notice:
    """Makes the headline of a page; on the surrogate it begins with "On the surrogate corpus,".

    Args:
        sentence: Begins with a small letter, unless its first word is a name. If it is empty, the
            headline says that there is no result.
        needs: What the result needs of the page's corpus, for
            :func:`cradle_lib.corpus.needs.unmet`. A corpus without it has that said in its
            headline.

    Returns:
        The headline.
    """
    if missing := PAGE.lacks(needs):
        return Notice(missing)
    if not sentence:
        return Notice("This page has no result for this corpus.")
    if PAGE.corpus is not None and PAGE.corpus.synthetic:
        simulated = " with simulated annotators," * PAGE.simulated
        return Notice(f"On the surrogate corpus,{simulated} {sentence}")
    first = sentence.split(" ", 1)[0]
    return Notice(sentence[:1].upper() + sentence[1:] if first.isalpha() else sentence)
