"""The corpus that a book is about: one choice, made outside the plan, that fills its slots."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cradle_lib import paths
from cradle_lib.errors import BookError

VARIABLE: Final = "CRADLE_CORPUS"
# Set to 1 to put the text of dialogues into a site for one's own machine.
TEXT: Final = "CRADLE_TEXT"
# Mirrors `load_corpus`, which can't be asked where its files lie without reading them.
_FOLDERS: Final = {
    "surrogate": paths.SURROGATE.relative_to(paths.SHIPPED),
    "hub": paths.RELEASE.relative_to(paths.ROOT),
}


@dataclass(frozen=True, slots=True)
class BookCorpus:
    """A corpus by choice: ``surrogate``, ``hub``, or the absolute path of a file.

    Attributes:
        choice: The choice.
        text: Whether the explorer has the text of a corpus that is not the surrogate.
    """

    choice: str = "surrogate"
    text: bool = False

    @classmethod
    def chosen(cls, root: Path) -> BookCorpus:
        """Reads ``CRADLE_CORPUS``, where a path begins at ``root``, and ``CRADLE_TEXT``.

        Without them, the corpus is the surrogate, and no text of others is shown.

        A file that is not there, or a release that has not been fetched, is an error.
        """
        choice = os.environ.get(VARIABLE) or "surrogate"
        if choice not in _FOLDERS:
            choice = os.path.realpath(root / choice)
        corpus = cls(choice, text=os.environ.get(TEXT) == "1")
        if not (root / corpus.file).is_file():
            hint = (
                "Run `cradle data fetch`."
                if choice == "hub"
                else f"{VARIABLE} is 'surrogate', 'hub' or a file in the release's format."
            )
            raise BookError("the book's corpus is missing", path=corpus.file, hint=hint)
        return corpus

    @property
    def name(self) -> str:
        """What the corpus of the test split is called, and the folder of its runs."""
        return f"{self.choice}-test" if self.choice in _FOLDERS else Path(self.choice).stem

    @property
    def training(self) -> str:
        """The corpus with a train and a dev split; empty for a single file, which has none."""
        return self.choice if self.choice in _FOLDERS else ""

    @property
    def file(self) -> Path:
        """The file of the test split, relative to the repository or absolute."""
        folder = _FOLDERS.get(self.choice)
        return Path(self.choice) if folder is None else folder / "test.parquet"

    def identity(self, root: Path) -> str:
        """Tells it from every other corpus: the choice, and a digest of its test split."""
        content = hashlib.sha256((root / self.file).read_bytes()).hexdigest()
        return f"{self.choice} {content[:16]}"
