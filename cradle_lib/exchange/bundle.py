"""One archive that holds a run and its scores, for others to check: an RO-Crate.

``*.jsonl`` are the journals as they are, ``record.json`` is the run's record, ``scores.json`` holds
the scores with everything they depend on, ``SHA256SUMS`` the checksums of all three, and
``ro-crate-metadata.json`` describes them in the words of `RO-Crate
<https://www.researchobject.org/ro-crate/>`_. The text of the dialogues is in none of them; a raw
answer may quote one.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.journals.places import journal_files
from cradle_lib.detection.journals.predictions import Predictions, load_predictions
from cradle_lib.errors import ExchangeError
from cradle_lib.exchange.archive import write_archive
from cradle_lib.record import Record, library_version
from cradle_lib.scoring.core.conventions import LEVELS, Conventions
from cradle_lib.scoring.core.evaluate import evaluate
from cradle_lib.scoring.core.report import level_scores
from cradle_lib.statistics.bootstrap import DRAWS

RECORD: Final = "record.json"
SCORES: Final = "scores.json"
SUMS: Final = "SHA256SUMS"
METADATA: Final = "ro-crate-metadata.json"


def bundle(
    journal: Path,
    corpus: Corpus,
    path: Path,
    *,
    conventions: Conventions | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    license: str | None = None,
) -> Predictions:
    """Writes a run and its scores, computed as by :func:`.evaluate`, to one archive.

    If the journal does not exist, its name stands for its shards. ``license`` is the address of the
    licence under which the bundle may be used; ``None`` states none.

    Raises:
        CradleError: If the run is not finished or does not fit the corpus, the package ``rocrate``
            is missing, or the archive can't be written.
    """
    files = journal_files(journal)
    run = load_predictions(files, corpus, partial=True)
    if not run.is_finished:
        raise ExchangeError(
            f"{paths.shown(journal)}: {len(run.corpus):,} of the run's dialogues are complete. "
            "Finish it with `cradle infer`, and bundle it then."
        )
    scores = scored(run, conventions or Conventions(), draws, seed)
    contents = {file.name: file.read_bytes() for file in files}
    contents[RECORD] = _json(run.record.model_dump())
    contents[SCORES] = _json(scores)
    sums = (f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in contents.items())
    contents[SUMS] = "".join(sums).encode()
    contents[METADATA] = _metadata(contents, run.record, license)
    write_archive(contents, path)
    return run


def scored(run: Predictions, conventions: Conventions, draws: int, seed: int) -> dict[str, Any]:
    """Scores a run at all levels, as it stands in a bundle: with all that the scores depend on."""
    results = {
        level: evaluate(run, level=level, conventions=conventions, draws=draws, seed=seed)
        for level in LEVELS
    }
    settings = {"conventions": asdict(conventions), "draws": draws, "seed": seed}
    return {"version": library_version(), **settings, "levels": level_scores(results)}


def _json(content: Any) -> bytes:
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()


def _metadata(contents: Mapping[str, bytes], record: Record, license: str | None) -> bytes:
    try:
        from rocrate.model.contextentity import ContextEntity
        from rocrate.rocrate import ROCrate
    except ImportError:
        raise ExchangeError(
            "a bundle needs the package rocrate, which is not installed. Install it with "
            f"`{paths.install_command('bundle')}`."
        ) from None
    crate = ROCrate()
    crate.name = f"{record.name} over {record.corpus}"
    crate.description = (
        "A run of the CRADLE-Dialogue benchmark: its answers, its record and its scores. "
        "`cradle verify` derives all of it anew."
    )
    if license is not None:
        crate.license = license
    program = ContextEntity(
        crate,
        "#cradle-lib",
        properties={
            "@type": "SoftwareApplication",
            "name": "cradle-lib",
            "softwareVersion": library_version(),
        },
    )
    crate.add(program)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in contents.items():
            source = Path(folder) / name
            source.write_bytes(content)
            crate.add_file(source, name, properties=_about(name, content))
        crate.mainEntity = crate.dereference(SCORES)
        crate.write(Path(folder))
        return (Path(folder) / METADATA).read_bytes()


def _about(name: str, content: bytes) -> dict[str, Any]:
    ending = Path(name).suffix
    kinds = {".json": "application/json", ".jsonl": "application/jsonl"}
    described = {
        RECORD: "What was asked, of what, with what",
        SCORES: "Scores with their intervals, signatures and settings",
        SUMS: "Checksums of the other files",
    }
    return {
        "name": described.get(name, "Journal: one line for each answer"),
        "encodingFormat": kinds.get(ending, "text/plain"),
        "contentSize": str(len(content)),
        "sha256": hashlib.sha256(content).hexdigest(),
        "creator": {"@id": "#cradle-lib"},
    }
