"""Finds a corpus by name: the surrogate, the fetched release, or a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pandas as pd

from cradle_lib import paths
from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.corpus.formats import META
from cradle_lib.corpus.hub import release_file
from cradle_lib.corpus.release import read_release
from cradle_lib.errors import CorpusError

SPLIT_NAMES: Final = ("train", "dev", "test")


def load_corpus(corpus: str | Path = "surrogate", split: str = "test") -> Corpus:
    """Loads a corpus.

    Args:
        corpus: ``surrogate`` (ships with the project), ``hub`` (the real release, after
            ``cradle data fetch``), or the path of a file in the release's format.
        split: ``train``, ``dev`` or ``test``; a path is one split already.

    Returns:
        The corpus. The surrogate knows each dialogue's scenario and reveal timing; a file does
        if it has the columns ``scenario`` and ``timing``.

    Raises:
        CorpusError: If there is no such corpus or split, or it can't be read.
    """
    if split not in SPLIT_NAMES:
        raise CorpusError(f"no split {split!r}", hint=f"Splits are {', '.join(SPLIT_NAMES)}.")
    if corpus == "surrogate":
        return _surrogate(split)
    if corpus == "hub":
        path = release_file(split)
        if not path.is_file():
            raise CorpusError(
                "the release has not been fetched",
                path=paths.shown(path),
                hint="Run `cradle data fetch`.",
            )
        return read_release(path, f"hub-{split}")
    path = Path(corpus)
    if not path.suffix and not path.exists():
        raise CorpusError(
            f"no corpus {str(corpus)!r}",
            hint="Name 'surrogate', 'hub', or a parquet, CSV, JSON or JSON lines file.",
        )
    surrogate = path.resolve().parent == paths.SURROGATE and path.stem in SPLIT_NAMES
    return _surrogate(path.stem) if surrogate else read_release(path)


def _surrogate(split: str) -> Corpus:
    corpus = read_release(paths.SURROGATE / f"{split}.parquet", f"surrogate-{split}")
    meta = pd.read_parquet(paths.SURROGATE / "meta.parquet")
    meta = meta[meta["split"] == split].sort_values("dialogue")
    if len(meta) != len(corpus):
        raise CorpusError(
            f"meta.parquet knows {len(meta)} dialogues of {split}, the corpus has {len(corpus)}",
            path=paths.shown(paths.SURROGATE),
            hint="Run `python -m tools.surrogate`.",
        )
    return replace(corpus, meta={name: meta[name].tolist() for name in META}, synthetic=True)
