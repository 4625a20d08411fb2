"""Checks a bundle: derives its questions and scores again, and lists what differs.

Every question of the run is built again from the corpus, and its key is compared with the one
stored with the answer. A question contains the model's earlier predictions, so a changed answer
changes the keys after it. Then the run is scored again. An archive in which an answer was changed
together with everything that depends on it cannot be detected: publish the archive's checksum.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from cradle_extras.bundle.archive import read_archive
from cradle_extras.bundle.bundle import RECORD, SCORES, SUMS, scored, unpack_journals
from cradle_lib import paths, strict_json
from cradle_lib.corpus import Corpus, Dialogue, load_corpus
from cradle_lib.detection.journal import read_journal
from cradle_lib.detection.predictions import load_predictions, template_of
from cradle_lib.detection.session import Prediction, Session
from cradle_lib.errors import CradleError, JournalError
from cradle_lib.prompts import Template
from cradle_lib.record import Record
from cradle_lib.scoring.conventions import Conventions
from cradle_lib.version import library_version

#: What may differ; the version is the library's, the prompt is its template.
Kind = Literal[
    "file",
    "journal",
    "record",
    "version",
    "corpus",
    "prompt",
    "missing turn",
    "question",
    "answer",
    "score",
]
# Earlier versions wrote this file, and did not list it among the checksums.
_OLD_DESCRIPTION: Final = "ro-crate-metadata.json"
_MOST_DRAWS: Final = 100_000
# Another machine may add up in another order.
_NEAR: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it was derived: its kind, what was found and what was derived."""

    kind: Kind
    about: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What came of a bundle.

    Attributes:
        path: The archive.
        checksum: Its SHA-256.
        record: The run's record; ``None`` if no journal could be read.
        turns: Answers whose key was derived and is the one beside them.
        findings: What differs.
    """

    path: Path
    checksum: str
    record: Record | None
    turns: int
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing differs but, at most, the library's version."""
        return all(finding.kind == "version" for finding in self.findings)


def verify(path: Path, corpus: Corpus | None = None) -> Verification:
    """Derives questions and scores of a bundle again, from the corpus that the run was over.

    By default the corpus is the one that the record names: the surrogate or the fetched release.

    Raises:
        JournalError: If the archive can't be read, or lacks a journal, record or scores.
        CorpusError: If the corpus is not here.
    """
    files = read_archive(path)
    if lacking := [name for name in (RECORD, SCORES, SUMS) if name not in files]:
        raise JournalError(
            f"{paths.shown(path)}: is no bundle, it lacks {', '.join(lacking)}. "
            "A bundle is made with `cradle bundle`."
        )
    findings = [*_files(files)]
    stated_record, stated = (_object(files[name], name, path) for name in (RECORD, SCORES))
    with tempfile.TemporaryDirectory() as folder:
        journals = unpack_journals(files, Path(folder), path)
        try:
            parts = [read_journal(journal) for journal in journals]
        except JournalError as error:
            # The message names a temporary file, whose name is that in the bundle.
            about = str(error).replace(f"{folder}/", "").partition(". Restore")[0]
            parts, findings = [], [*findings, Finding("journal", about)]
        record = parts[0][0] if parts else None
        turns = 0
        if record is not None:
            corpus = corpus if corpus is not None else _corpus_of(record, path)
            findings += _circumstances(record, corpus, stated)
            if not any(finding.kind in ("corpus", "prompt") for finding in findings):
                turns = _questions(parts, corpus, findings)
                findings += _rescored(journals, corpus, stated, stated_record)
    return Verification(
        path=path,
        checksum=hashlib.sha256(path.read_bytes()).hexdigest(),
        record=record,
        turns=turns,
        findings=tuple(findings),
    )


def _object(content: bytes, name: str, path: Path) -> dict[str, Any]:
    try:
        found = strict_json.loads(content)
    except ValueError as error:
        raise JournalError(f"{paths.shown(path)}: its {name} is not JSON ({error}).") from None
    if not isinstance(found, dict):
        raise JournalError(f"{paths.shown(path)}: its {name} is not a JSON object.")
    return found


def _files(files: Mapping[str, bytes]) -> Iterator[Finding]:
    lines = files[SUMS].decode("utf-8", "replace").splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    for name, digest in sums.items():
        if name not in files:
            yield Finding("file", f"{name} is listed in {SUMS} and not in the archive")
        elif hashlib.sha256(files[name]).hexdigest() != digest:
            yield Finding("file", f"{name} was changed: its checksum is not the one in {SUMS}")
    for name in files:
        if name not in sums and name not in (SUMS, _OLD_DESCRIPTION):
            yield Finding("file", f"{name} is not listed in {SUMS}")


def _corpus_of(record: Record, path: Path) -> Corpus:
    name, _, split = record.corpus.rpartition("-")
    if name in ("surrogate", "hub"):
        return load_corpus(name, split)
    raise JournalError(
        f"{paths.shown(path)}: the run was over {record.corpus!r} ({record.corpus_fingerprint}), "
        "a file of somebody's own. Name it with `--corpus`."
    )


def _circumstances(record: Record, corpus: Corpus, stated: Mapping[str, Any]) -> Iterator[Finding]:
    here = library_version()
    for what, version in (("run", record.version), ("scores", stated.get("version"))):
        if version != here:
            yield Finding("version", f"the {what}: made with version {version}, this is {here}")
    if record.corpus_fingerprint != corpus.fingerprint:
        about = f"the run was over {record.corpus} ({record.corpus_fingerprint}), this is "
        yield Finding("corpus", f"{about}{corpus.name} ({corpus.fingerprint})")
    if template_of(record) is None:
        about = f"template {record.prompt!r} ({record.prompt_hash}) is not here, or another one"
        yield Finding("prompt", about)


def _questions(
    parts: Sequence[tuple[Record, list[Prediction]]], corpus: Corpus, findings: list[Finding]
) -> int:
    """Counts the answers whose key was derived, and adds what differs to the findings."""
    record, template = parts[0][0], template_of(parts[0][0])
    assert template is not None
    lines: dict[str, dict[int, Prediction]] = {}
    for _, stored in parts:
        for prediction in stored:
            lines.setdefault(prediction.dialogue, {})[prediction.turn] = prediction
    complete = any(part.dialogues is None for part, _ in parts)
    chosen = {name for part, _ in parts for name in part.dialogues or ()}
    fitting = 0
    for dialogue in corpus:
        own = lines.pop(dialogue.id, {})
        if complete or dialogue.id in chosen or own:
            fitting += _dialogue(dialogue, template, record, own, findings)
    findings += [Finding("question", f"the corpus has no dialogue {name}") for name in lines]
    return fitting


def _dialogue(
    dialogue: Dialogue,
    template: Template,
    record: Record,
    own: Mapping[int, Prediction],
    findings: list[Finding],
) -> int:
    def differs(kind: Kind, turn: int, about: str) -> None:
        findings.append(Finding(kind, f"dialogue {dialogue.id}, turn {turn}: {about}"))

    asked = [turn.turn_id for turn in dialogue.user_turns]
    for turn in asked:
        if turn not in own:
            differs("missing turn", turn, "there is no answer")
    for turn in own.keys() - set(asked):
        differs("question", turn, "is no turn that is asked about")
    session = Session(dialogue, template, record.history, own.values())
    fitting = 0
    for turn, taken in zip(asked, session.taken, strict=False):
        if taken.turn != turn:
            differs("question", turn, f"its answer stands at turn {taken.turn}")
            return fitting
        fitting += 1
    prompt = session.prompt
    if prompt is not None and prompt.turn in own:
        if prompt.tagged or (fitting and record.history == "self"):
            about = "was asked after other tags: an answer before it was changed"
            differs("answer", prompt.turn, about)
        else:
            about = "its key is not that of the question which the corpus gives"
            differs("question", prompt.turn, about)
    return fitting


def _rescored(
    journals: Sequence[Path],
    corpus: Corpus,
    stated: Mapping[str, Any],
    stated_record: Mapping[str, Any],
) -> Iterator[Finding]:
    try:
        run = load_predictions(journals, corpus, partial=True)
        conventions = Conventions(**stated.get("conventions", {}))
        draws, seed = int(stated.get("draws", -1)), int(stated.get("seed", 0))
        if not 0 <= draws <= _MOST_DRAWS:
            yield Finding("score", f"{draws:,} bootstrap draws, expected 0 to {_MOST_DRAWS:,}")
            return
        again = scored(run, conventions, draws, seed)
    except (CradleError, TypeError, ValueError, OverflowError) as error:
        yield Finding("score", f"can't be computed: {str(error).partition('. ')[0]}")
        return
    if not _is_record(stated_record, run.record):
        yield Finding("record", f"{RECORD} is not the record in the journal")
    levels = stated.get("levels")
    for level, derived in again["levels"].items():
        yield from _level(level, levels.get(level) if isinstance(levels, dict) else None, derived)


def _is_record(stated: Mapping[str, Any], record: Record) -> bool:
    """Whether ``record.json`` contains this record; older versions wrote fewer fields."""
    try:
        return Record.model_validate(stated) == record
    except ValueError:
        return False


def _level(level: str, found: Any, derived: Mapping[str, Any]) -> Iterator[Finding]:
    rows = found.get("scores") if isinstance(found, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        yield Finding("score", f"{level}: there are none")
        return
    for name in ("signature", "turns", "of_turns", "outcomes"):
        # Another version is a finding of its own.
        pair = [str(each.get(name)).partition("|v")[0] for each in (found, derived)]
        if pair[0] != pair[1]:
            yield Finding("score", f"{level}, {name}: {pair[0]:.200}, derived {pair[1]:.200}")
    if len(rows) != len(derived["scores"]):
        yield Finding("score", f"{level}: {len(rows)} rows, not all")
        return
    for mine, theirs in zip(derived["scores"], rows, strict=True):
        for name in mine:
            if name != "signature" and not _equal(mine[name], theirs.get(name)):
                what = " ".join(str(mine[key]) for key in ("label", "score") if mine[key])
                about = f"{level}, {what}, {name}: {theirs.get(name)!s:.40}, derived {mine[name]}"
                yield Finding("score", about)


def _equal(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, float) and isinstance(theirs, float | int):
        return math.isclose(mine, theirs, rel_tol=_NEAR, abs_tol=_NEAR)
    return bool(mine == theirs)
