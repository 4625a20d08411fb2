"""Bundles: zip archives of a run and its scores, for others to check.

``*.jsonl`` are the journals, ``record.json`` is the run's record, ``scores.json`` contains the
scores with everything they depend on, and ``SHA256SUMS`` the checksums of these files. Journals are
unchanged, but without answers about turns that the corpus does not have now, and about dialogues
that are not answered completely.
None of them contains the dialogues, but raw answers may quote them.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import warnings
from collections.abc import Callable, Container, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from cradle_extras.bundle.archive import read_archive, write_archive
from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.runs.journal import journal_files
from cradle_lib.detection.runs.predictions import (
    Predictions,
    asked_turns,
    load_predictions,
    require_finished,
)
from cradle_lib.errors import CradleError, JournalError
from cradle_lib.scoring.conventions import LEVELS, Conventions
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.output import level_scores
from cradle_lib.statistics.bootstrap import DRAWS
from cradle_lib.version import library_version

RECORD: Final = "record.json"
SCORES: Final = "scores.json"
SUMS: Final = "SHA256SUMS"


def bundle(
    journal: Path,
    corpus: Corpus,
    path: Path,
    *,
    conventions: Conventions | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    report: Callable[[str], object] = warnings.warn,
) -> Predictions:
    """Writes a run and its scores, computed as by :func:`.evaluate`, to one archive.

    If the journal does not exist, its shards are used. ``report`` is told how many answers are left
    out.

    Raises:
        CradleError: If the run is not finished or does not fit the corpus, or the archive can't be
            written.
    """
    files = journal_files(journal)
    run = load_predictions(files, corpus, partial=True)
    require_finished(run)
    scores = scored(run, conventions or Conventions(), draws, seed)
    contents, asked, left_out = {}, asked_turns(run.corpus), 0
    for file in files:
        lines = file.read_bytes().split(b"\n")[:-1]  # An incomplete last line is no answer.
        kept = [line for line in lines if _is_used(json.loads(line), asked)]
        contents[file.name] = b"".join(line + b"\n" for line in kept)
        left_out += len(lines) - len(kept)
    if left_out:
        report(
            f"{left_out:,} answers are left out, because the scores do not use them: "
            f"their dialogue is incomplete, or {corpus.name} does not have these turns now."
        )
    contents[RECORD] = _json(run.record.model_dump())
    contents[SCORES] = _json(scores)
    sums = (f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in contents.items())
    contents[SUMS] = "".join(sums).encode()
    write_archive(contents, path)
    return run


def _is_used(line: Mapping[str, Any], asked: Container[tuple[str, int]]) -> bool:
    return "record" in line or (line["dialogue"], line["turn"]) in asked


def load_bundle(path: Path, corpus: Corpus, *, partial: bool = False) -> Predictions:
    """Loads the run in a bundle, as :func:`.load_predictions` does from journals.

    The bundle's other files are not checked; :func:`.verify` does that.

    Raises:
        CradleError: If the archive can't be read or contains no journal, or its run does not fit
            the corpus.
    """
    files = read_archive(path)
    with tempfile.TemporaryDirectory() as folder:
        journals = unpack_journals(files, Path(folder), path)
        try:
            return load_predictions(journals, corpus, partial=partial)
        except CradleError as error:
            message = str(error).replace(f"{folder}/", "")
            raise JournalError(f"{paths.shown(path)}: {message}") from None


def unpack_journals(files: Mapping[str, bytes], folder: Path, path: Path) -> list[Path]:
    """Writes the journals of the bundle ``path`` to a folder, and returns their paths, sorted.

    Raises:
        JournalError: If the bundle contains no journal.
    """
    names = sorted(name for name in files if name.endswith(".jsonl"))
    if not names:
        raise JournalError(f"{paths.shown(path)}: is not a bundle: it contains no journal.")
    journals = [folder / Path(name).name for name in names]
    for journal, name in zip(journals, names, strict=True):
        journal.write_bytes(files[name])
    return journals


def scored(run: Predictions, conventions: Conventions, draws: int, seed: int) -> dict[str, Any]:
    """Scores a run at all levels, with everything that the scores depend on."""
    results = {
        level: evaluate(run, level=level, conventions=conventions, draws=draws, seed=seed)
        for level in LEVELS
    }
    settings = {"conventions": asdict(conventions), "draws": draws, "seed": seed}
    return {"version": library_version(), **settings, "levels": level_scores(results)}


def _json(content: Any) -> bytes:
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()
