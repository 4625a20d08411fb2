"""Finds a corpus by name: the surrogate, the fetched release, or a file."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from cradle_lib import paths
from cradle_lib.arguments import checked
from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.corpus.release import META, read_release
from cradle_lib.corpus.tables import read_columns
from cradle_lib.errors import CorpusError
from cradle_lib.labels import CONFIRM_MASK

SPLIT_NAMES: Final = ("train", "dev", "test")
#: Checksums of the files in the same folder, in the format of `sha256sum`.
SUMS: Final = "SHA256SUMS"


@checked
def load_corpus(corpus: str | Path = "surrogate", split: str = "test") -> Corpus:
    """Loads a corpus.

    Args:
        corpus: ``surrogate`` (ships with the project), ``hub`` (the real release, after
            ``cradle data fetch``), ``probes`` (short texts that ship with the project), or the path
            of a file in the release's format. For files in other forms see :func:`.convert`.
        split: ``train``, ``dev`` or ``test``; used only for ``surrogate`` and ``hub``.

    Returns:
        The corpus. Scenario and reveal timing are known for the surrogate, and for files with the
        columns ``scenario`` and ``timing``. For the release's test split, the timing is derived
        from the turn of the first confirm, or of the first alert if there is no confirm: early on
        turns 1 to 3, mid on 4 to 6, late after that (Sec 3.1); empty without a label.

    Raises:
        CorpusError: If there is no such corpus or split, or it can't be read.
    """
    if split not in SPLIT_NAMES:
        raise CorpusError(f"no split {split!r}", hint=f"Splits are {', '.join(SPLIT_NAMES)}.")
    if corpus == "surrogate":
        return _surrogate(split)
    if corpus == "probes":
        return _read_file(paths.DATA / "probes" / "probes.csv")
    if corpus == "hub":
        # Imported here, because the pages of the surrogate corpus do not need it.
        from cradle_lib.corpus.hub import read_fetched

        release = read_fetched(split, paths.RELEASE)
        # In train and dev, the windows of the three timings overlap.
        return _with_timing(release) if split == "test" else release
    path = Path(corpus)
    if not path.suffix and not path.exists():
        raise CorpusError(
            f"no corpus {str(corpus)!r}",
            hint="Name 'surrogate', 'hub', 'probes', or a parquet, CSV, JSON or JSON lines file.",
        )
    # Not resolve(), which raises for circular links.
    place = Path(os.path.realpath(path))
    surrogate = place.parent == paths.SURROGATE and path.stem in SPLIT_NAMES
    return _surrogate(path.stem) if surrogate else _read_file(path)


def _read_file(path: Path) -> Corpus:
    try:
        return read_release(path)
    except CorpusError as error:
        # Imported here, because most corpora are in the release's format.
        from cradle_lib.corpus.conversion import other_form

        form = other_form(path)
        if form is None:
            raise
        hint = f"This looks like {form}: run `cradle data convert {path} --out corpus.csv`."
        raise CorpusError(error.problem, path=path, row=error.row, hint=hint) from None


def _with_timing(corpus: Corpus) -> Corpus:
    timings = []
    for dialogue in corpus:
        labelled = [turn for turn in dialogue.turns if turn.mask]
        confirmed = [turn for turn in labelled if turn.mask & CONFIRM_MASK]
        turn = next((turn.turn_id + 1 for turn in confirmed or labelled), None)
        timings.append("" if turn is None else _timing_of(turn))
    return replace(corpus, meta=corpus.meta | {"timing": timings})


def _timing_of(turn: int) -> str:
    if turn <= 3:
        return "early"
    return "mid" if turn <= 6 else "late"


def _surrogate(split: str) -> Corpus:
    path, about = paths.SURROGATE / f"{split}.parquet", paths.SURROGATE / "meta.parquet"
    return _read_surrogate(split, path, about, _checked_sum(path), _checked_sum(about))


# A page loads some splits several times. The checksums are arguments because files may change.
@lru_cache(maxsize=len(SPLIT_NAMES))
def _read_surrogate(split: str, path: Path, about: Path, *sums: str) -> Corpus:
    corpus = read_release(path, f"surrogate-{split}")
    columns = read_columns(about, ("split", "dialogue", *META))
    rows = sorted(row for row in zip(*columns.values(), strict=True) if row[0] == split)
    _, _, *meta = (list(column) for column in zip(*rows, strict=True))
    return replace(corpus, meta=dict(zip(META, meta, strict=True)), synthetic=True)


def _checked_sum(file: Path) -> str:
    """Gives the checksum of a shipped file.

    Raises:
        CorpusError: If it is wrong; parquet does not detect a changed bit.
    """
    found = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
    sums = file.with_name(SUMS)
    text = sums.read_text(encoding="ascii", errors="replace") if sums.is_file() else ""
    if f"{found}  {file.name}" not in text.splitlines():
        raise CorpusError(
            f"its checksum is not the one in {SUMS}: the file is damaged, missing or was changed",
            path=paths.shown(file),
            hint="Restore it (git, or a new installation); keep your own dialogues elsewhere.",
        )
    return str(found)
