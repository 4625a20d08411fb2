"""Verifies a bundle: recomputes its questions and scores, and lists the differences.

Every question of the run is rebuilt from the corpus, and its key is compared with the one stored
with the answer. A question contains the model's earlier predictions, so a changed answer changes
all later keys of its dialogue. Then the run is scored again. A change of an answer together with
everything that depends on it can't be detected: publish the archive's checksum.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ValidationError

from cradle_extras.bundle.archive import read_archive
from cradle_extras.bundle.bundle import RECORD, SCORES, SUMS, scored, unpack_journals
from cradle_lib import paths, strict_json
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection.protocol.session import Prediction
from cradle_lib.detection.runs.journal import read_journal
from cradle_lib.detection.runs.predictions import load_predictions, session_of, template_of
from cradle_lib.errors import CradleError, JournalError
from cradle_lib.record import Record
from cradle_lib.scoring.conventions import Conventions
from cradle_lib.statistics.bootstrap import Estimate, excludes
from cradle_lib.validation import faults
from cradle_lib.version import library_version

#: Kinds of differences; the version is the library's, the prompt is its template.
Kind = Literal["file", "journal", "record", "version", "corpus", "prompt", "question", "score"]
_MOST_DRAWS: Final = 100_000
# Tolerance of scores, because another machine may sum in another order.
_TOLERANCE: Final = 1e-9
# Not compared: bundles of earlier versions lack "cleaned", and "coverage" was called "over".
_NOT_COMPARED: Final = ("cleaned", "coverage", "over")


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference: its kind, and what was found and expected."""

    kind: Kind
    about: str


@dataclass
class Verification:
    """The result of verifying a bundle.

    Attributes:
        path: The archive.
        checksum: Its SHA-256.
        record: The run's record; ``None`` if a journal can't be read.
        turns: Number of answers whose key is that of the question derived for their turn.
        findings: All differences.
    """

    path: Path
    checksum: str
    record: Record | None = None
    turns: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether nothing differs except, perhaps, the library's version."""
        return all(finding.kind == "version" for finding in self.findings)


def verify(path: Path, corpus: Corpus | None = None) -> Verification:
    """Recomputes the questions and scores of a bundle from the corpus of the run.

    The default corpus is the one that the record names: the surrogate or the fetched release.

    Raises:
        JournalError: If the archive can't be read, or lacks a journal, record or scores.
        CorpusError: If the corpus is not on this machine.
    """
    files = read_archive(path)
    if missing := [name for name in (RECORD, SCORES, SUMS) if name not in files]:
        raise JournalError(
            f"{paths.shown(path)}: is not a bundle: it lacks {', '.join(missing)}. "
            "A bundle is made with `cradle bundle`."
        )
    stated_record, stated = (_read_object(files[name], name, path) for name in (RECORD, SCORES))
    found = Verification(path, hashlib.sha256(path.read_bytes()).hexdigest())
    found.findings += _check_sums(files)
    with tempfile.TemporaryDirectory() as folder:
        journals = unpack_journals(files, Path(folder), path)
        try:
            parts = [read_journal(journal) for journal in journals]
        except JournalError as error:
            # In the message, the path of the temporary file becomes its name in the bundle.
            about = str(error).replace(f"{folder}/", "").partition(". Restore")[0]
            found.findings.append(Finding("journal", about))
            return found
        record = found.record = parts[0][0]
        corpus = corpus if corpus is not None else _corpus_of(record, path)
        found.findings += _check_setting(record, corpus, stated)
        if not any(finding.kind in ("corpus", "prompt") for finding in found.findings):
            _check_questions(parts, corpus, found)
            found.findings += _check_scores(journals, corpus, stated, stated_record)
    return found


def _read_object(content: bytes, name: str, path: Path) -> dict[str, Any]:
    try:
        found = strict_json.loads(content)
        if not isinstance(found, dict):
            raise ValueError("expected an object")
    except ValueError as error:
        raise JournalError(f"{paths.shown(path)}: its {name} is not JSON ({error}).") from None
    return found


def _check_sums(files: Mapping[str, bytes]) -> Iterator[Finding]:
    lines = files[SUMS].decode("utf-8", "replace").splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    found = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    for name in sorted(sums.keys() | found.keys() - {SUMS}):
        if sums.get(name) != found.get(name):
            yield Finding("file", f"{name} is missing, or its checksum is not the one in {SUMS}")


def _corpus_of(record: Record, path: Path) -> Corpus:
    name, _, split = record.corpus.rpartition("-")
    if name in ("surrogate", "hub"):
        return load_corpus(name, split)
    raise JournalError(
        f"{paths.shown(path)}: the run was over {record.corpus!r} ({record.corpus_fingerprint}), "
        "a file of its author. Name it with `--corpus`."
    )


def _check_setting(record: Record, corpus: Corpus, stated: Mapping[str, Any]) -> Iterator[Finding]:
    here = library_version()
    for what, version in (("run", record.version), ("scores", stated.get("version"))):
        if version != here:
            yield Finding("version", f"the {what}: made with version {version}, this is {here}")
    if record.corpus_fingerprint != corpus.fingerprint:
        about = f"the run was over {record.corpus} ({record.corpus_fingerprint}), this is "
        yield Finding("corpus", f"{about}{corpus.name} ({corpus.fingerprint})")
    if template_of(record) is None:
        about = f"template {record.prompt!r} ({record.prompt_hash}) is missing here, or differs"
        yield Finding("prompt", about)


def _check_questions(
    parts: Sequence[tuple[Record, list[Prediction]]], corpus: Corpus, found: Verification
) -> None:
    """Derives every question, counts the matching answers, and adds the differences.

    Nothing is derived if the template is missing, which is a finding of its own.
    """
    record, template = parts[0][0], template_of(parts[0][0])
    if template is None:
        return
    answers: dict[str, dict[int, Prediction]] = defaultdict(dict)
    for _, predictions in parts:
        for prediction in predictions:
            answers[prediction.dialogue][prediction.turn] = prediction
    complete = any(part.dialogues is None for part, _ in parts)
    chosen = {name for part, _ in parts for name in part.dialogues or ()} | answers.keys()
    for dialogue in corpus:
        if not complete and dialogue.id not in chosen:
            continue
        own = answers.pop(dialogue.id, {})
        asked = {turn.turn_id for turn in dialogue.user_turns}
        taken = session_of(record, dialogue, template, own.values()).taken
        fitting = {prediction.turn for prediction in taken} & asked
        found.turns += len(fitting)
        if wrong := asked - fitting | own.keys() - asked:
            about = f"dialogue {dialogue.id}, turn {min(wrong)}: no answer, or its key does not "
            reason = "match the question: this answer or an earlier one was changed"
            found.findings.append(Finding("question", about + reason))
    for name in answers:
        found.findings.append(Finding("question", f"the corpus has no dialogue {name}"))


def _check_scores(
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
            raise ValueError(f"{draws:,} bootstrap draws, expected 0 to {_MOST_DRAWS:,}")
        scores = scored(run, conventions, draws, seed)
        same = Record.model_validate(stated_record) == run.record
    except ValidationError as error:
        yield Finding("record", f"{RECORD}: {faults(error, Record)}")
        return
    except (CradleError, TypeError, ValueError, OverflowError) as error:
        yield Finding("score", f"can't be computed: {str(error).partition('. ')[0]}")
        return
    if not same:
        yield Finding("record", f"{RECORD} is not the record in the journal")
    for about in _differences(stated.get("levels"), scores["levels"]):
        yield Finding("score", about)


def _differences(stated: Any, derived: Any) -> Iterator[str]:
    """Compares the scores that a bundle states with those that were derived, value by value."""
    before, now = dict(_values(stated, "scores")), dict(_values(derived, "scores"))
    for place in before | now:
        if place.rpartition(", ")[2] in _NOT_COMPARED:
            continue
        old, new = before.get(place), now.get(place)
        if isinstance(old, float | int) and isinstance(new, float):
            same = math.isclose(old, new, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
        else:
            # A signature ends with the version, which is a separate finding.
            same = str(old).partition("|v")[0] == str(new).partition("|v")[0]
        if not same:
            yield f"{place}: {old!s:.200}, derived {new!s:.200}"


def _values(content: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Lists the scalar values of a JSON document with their places."""
    if isinstance(content, dict):
        content = _without_excluding_interval(content)
        for name, value in content.items():
            yield from _values(value, f"{place}, {name}")
    elif isinstance(content, list):
        for number, row in enumerate(content):
            names = [row.get("label"), row.get("score")] if isinstance(row, dict) else []
            about = "".join(f" {name}" for name in names if name)
            yield from _values(row, f"{place}, row {number}{about}")
    else:
        yield place, content


def _without_excluding_interval(row: dict[str, Any]) -> dict[str, Any]:
    """Drops an interval that does not contain its score, which earlier versions stated."""
    estimate: list[Any] = [row.get(name) for name in Estimate._fields]
    if all(isinstance(part, float | int) for part in estimate) and excludes(*estimate):
        return row | {"low": None, "high": None}
    return row
