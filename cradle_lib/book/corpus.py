"""The corpus of the book, chosen by environment variables."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cradle_lib import paths
from cradle_lib.detection.baselines.tfidf import TRAIN
from cradle_lib.errors import BookError

VARIABLE: Final = "CRADLE_CORPUS"
# If 1, the site includes the text of dialogues, for use on the local machine only.
TEXT: Final = "CRADLE_TEXT"
# As in `load_corpus`, which does not return the paths of its files.
_FOLDERS: Final = {
    "surrogate": paths.SURROGATE.relative_to(paths.SHIPPED),
    "hub": paths.RELEASE.relative_to(paths.ROOT),
}


@dataclass(frozen=True, slots=True)
class BookCorpus:
    """The corpus of the book.

    Attributes:
        choice: ``surrogate``, ``hub``, or the absolute path of a file.
        text: Whether the explorer shows the text of a corpus that is not the surrogate.
        train: The corpus that baselines learn from; empty for the train split in the folder of the
            corpus.
    """

    choice: str = "surrogate"
    text: bool = False
    train: str = ""

    @classmethod
    def chosen(cls, root: Path) -> BookCorpus:
        """Reads ``CRADLE_CORPUS``, ``CRADLE_TRAIN`` and ``CRADLE_TEXT``.

        Paths are relative to ``root``. By default the corpus is the surrogate, and no text of other
        corpora is shown.

        Raises:
            BookError: If the file is missing, or the release has not been fetched.
        """
        choice = os.environ.get(VARIABLE) or "surrogate"
        if choice not in _FOLDERS:
            choice = os.path.realpath(root / choice)
        corpus = cls(choice, os.environ.get(TEXT) == "1", os.environ.get(TRAIN) or "")
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
        """The name of the test split's corpus, and of the folder with its runs."""
        return f"{self.choice}-test" if self.choice in _FOLDERS else Path(self.choice).stem

    def training(self, root: Path) -> str:
        """The corpus with train and dev splits; empty for a file, or if one of them is missing."""
        if self.choice not in _FOLDERS:
            return ""
        splits = [(root / self.file).with_stem(split) for split in ("train", "dev")]
        return self.choice if all(split.is_file() for split in splits) else ""

    @property
    def file(self) -> Path:
        """The file of the test split, relative to the repository or absolute."""
        folder = _FOLDERS.get(self.choice)
        return Path(self.choice) if folder is None else folder / "test.parquet"

    def identity(self, root: Path) -> str:
        """Identifies the corpus by the choice and a digest of its test split.

        What baselines learn from is added if the environment names it.
        """
        files = [root / self.file, *([root / self.train] if self.train else [])]
        contents = [file.read_bytes() for file in files if file.is_file()]
        digests = [hashlib.sha256(content).hexdigest()[:16] for content in contents]
        return " ".join(filter(None, [self.choice, self.train, *digests]))
