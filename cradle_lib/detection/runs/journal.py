"""The journal: an append-only file with one line per answer, and its location.

The first line is a header with the record of the run; each further line is one prediction. Every
answer is written immediately, so that a killed process loses only unfinished calls. The file is
synced to disk at most once a second, and at the end. An incomplete last line is dropped on resume.
If a turn occurs twice, the later line counts.

A run that is resumed with another commit or another version of the corpus writes a further header,
and so does a run whose engine falls back on another one; the last header counts. Other settings are
refused, unless every question failed, for instance because of a mistyped name: the journal then
starts over.

A journal is a text file that anybody can edit. The fields of a line are checked, keys may occur
only once, and the labels must match those that the parser reads in the raw answer.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import Any, Final, Self

from filelock import FileLock, Timeout
from pydantic import ValidationError

from cradle_lib import paths, strict_json
from cradle_lib.corpus import Corpus
from cradle_lib.detection.protocol.parsing import Outcome, read_answer
from cradle_lib.detection.protocol.session import PREDICTION, Metadata, Prediction
from cradle_lib.errors import CorpusError, JournalError, RegistryError
from cradle_lib.files import visible_files
from cradle_lib.labels import format_mask, parse
from cradle_lib.prompts import load_template
from cradle_lib.prompts.template import DETECTION_SLOTS
from cradle_lib.record import History, Record
from cradle_lib.validation import faults

#: Length of the checksum of settings in the name of a journal.
CHECKSUM_DIGITS: Final = 8
_CHECKSUM: Final = rf"(\.[0-9a-f]{{{CHECKSUM_DIGITS}}})?"
_SYNC_SECONDS: Final = 1.0
_START: Final = b'{"record": {'
_FIELDS: Final = ("dialogue", "turn", "key", "answer", "labels", "outcome", "reason")
_METADATA: Final = tuple(f.name for f in fields(Metadata) if f.name != "error")
# Fields that are written only if they are set: most engines do not use them.
_OPTIONAL: Final = frozenset({"choices", "tokens_written", "served", "limited_by", "ending"})


# Fields of a record that say who answered.
_SOFTWARE: Final = ("started", "version", "commit", "dirty", "python", "platform", "packages")


class Journal:
    """A journal that is being written; made by :meth:`open`.

    Attributes:
        path: The file.
        record: The record of the run, as in the last header.
    """

    def __init__(self, path: Path, file: FileIO, record: Record) -> None:
        self.path, self.record, self._file = path, record, file
        # Whether the record is to be written before the next answer.
        self._new_record = False
        self._synced = time.monotonic()

    @classmethod
    @contextmanager
    def open(cls, path: Path, record: Record) -> Iterator[Self]:
        """Opens a journal for a run, new or to be resumed.

        Args:
            path: The file; the caller holds its lock (:func:`lock_journal`).
            record: The record of the run that is about to start.

        Yields:
            The journal, to which answers are appended.

        Raises:
            JournalError: If the file belongs to a run with other settings (the message
                names them), or if it is damaged.
            CorpusError: If it has answers about another corpus file of the same name.
        """
        *lines, torn = _read_lines(path) if path.exists() else [b""]
        # Refuse files that are not journals before truncating them.
        if not lines and not _START.startswith(torn[: len(_START)]):
            raise _no_header(path)
        before, stored = parse_lines(lines, path) if lines else (None, [])
        if before is not None and before.identity != record.identity:
            if any(prediction.outcome is not Outcome.FAILED for prediction in stored):
                raise JournalError(
                    f"{paths.shown(path)}: this journal belongs to another run: "
                    f"{record.differences(before)}. Choose another path for this run, or "
                    "move the file away."
                )
            # Every question failed: start over.
            before, lines = None, []
        if before is not None and stored:
            record = _of_same_file(before, record, path)
        with path.open("ab", buffering=0) as file:
            file.truncate(sum(len(line) + 1 for line in lines))
            journal = cls(path, file, record)
            # A resumed run needs a new header only if more than its start time differs. If only
            # the software does, it needs one before its next answer, if there is any.
            if before is None or _with(record, before, _SOFTWARE) != record:
                journal._write(record)
            else:
                journal._new_record = _with(record, before, ["started"]) != record
            try:
                yield journal
            finally:
                os.fsync(file.fileno())

    def record_fallback(self, reason: str | None) -> bool:
        """Records a change of the reason for which another engine answers, in a further header.

        Returns:
            Whether it has.
        """
        if reason == self.record.fallback:
            return False
        self.record = self.record.model_copy(update={"fallback": reason})
        self._new_record = True
        return True

    def append(self, prediction: Prediction) -> None:
        """Writes one prediction. It is kept even if the process is killed after this call."""
        if self._new_record:
            self._write(self.record)
            self._new_record = False
        self._write(prediction)
        if time.monotonic() - self._synced >= _SYNC_SECONDS:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def _write(self, line: Record | Prediction) -> None:
        try:
            data = to_bytes(line)
        except ValueError as error:
            raise JournalError(
                f"{paths.shown(self.path)}: JSON has no NaN and no infinite numbers, but a setting "
                f"or an answer has one ({error}). Correct the model's settings or its engine."
            ) from error
        try:
            while data:
                data = data[os.write(self._file.fileno(), data) :]
        except OSError as error:
            # An engine would treat an OSError as one of the model, and fail only this question.
            raise JournalError(
                f"{paths.shown(self.path)}: can't be written ({error.strerror}). The answers so "
                "far are kept: free some space, and run the same command again."
            ) from error


def _with(record: Record, before: Record, names: Iterable[str]) -> Record:
    """Replaces some fields of the earlier record by those of the present one."""
    return before.model_copy(update={name: getattr(record, name) for name in names})


def read_journal(path: Path) -> tuple[Record, list[Prediction]]:
    """Reads a journal, finished or not.

    Args:
        path: The file.

    Returns:
        The last record, and one prediction per turn, ordered by dialogue and turn. An incomplete
        last line is left out.

    Raises:
        JournalError: As :func:`read_answers`.
    """
    record, stored = read_answers(path)
    return record, latest_answers(stored)


def latest_answers(stored: Iterable[Prediction]) -> list[Prediction]:
    """Keeps the last answer about each turn, ordered by dialogue and turn."""
    latest = {(p.dialogue, p.turn): p for p in stored}
    return [latest[key] for key in sorted(latest)]


def read_record(path: Path) -> Record:
    """Reads the first record of a run, in one journal or in shards.

    Its settings are those of the whole run.

    Raises:
        JournalError: If the file does not exist, can't be read, or has no header.
    """
    first = journal_files(path)[0]
    return parse_lines(_read_lines(first, 1)[:-1], first)[0]


def all_failed(path: Path) -> bool:
    """Whether a run, in one journal or in shards, has no answer that could be lost."""
    answers = (answer for file in journal_files(path) for answer in read_answers(file)[1])
    return all(answer.outcome is Outcome.FAILED for answer in answers)


def read_answers(path: Path) -> tuple[Record, list[Prediction]]:
    """Reads the last record and every answer, in the order in which they were written.

    Answers that a later one replaced are included, because they may have cost money.

    Raises:
        JournalError: If the file does not exist, can't be read (such as a folder), has no header,
            or has a damaged line.
    """
    return parse_lines(_read_lines(path)[:-1], path)


def to_line(prediction: Prediction) -> dict[str, Any]:
    """Converts a prediction into the JSON object of its line."""
    line = {name: getattr(prediction, name, None) for name in (*_FIELDS, *_METADATA)}
    line |= {"labels": format_mask(prediction.mask), "seconds": round(prediction.seconds, 4)}
    return {
        name: value
        for name, value in line.items()
        if name not in _OPTIONAL or value not in (None, ())
    }


def to_bytes(line: Record | Prediction) -> bytes:
    """Gives the line of a record or a prediction, with its line break."""
    if isinstance(line, Prediction):
        content = to_line(line)
    else:
        content = {"record": line.model_dump(), "identity": line.identity}
    # ASCII, so that no reader takes a Unicode line separator in an answer for a new line.
    return (json.dumps(content, allow_nan=False) + "\n").encode("ascii")


def parse_lines(lines: Iterable[bytes], path: Path) -> tuple[Record, list[Prediction]]:
    """Parses complete lines into the last record and all predictions.

    Raises:
        JournalError: If a line is damaged or edited, or the first is not a header. The message
            names the line of ``path``.
    """
    record: Record | None = None
    stored: list[Prediction] = []
    for number, raw in enumerate(lines, start=1):
        try:
            line = strict_json.loads(raw)
            if not isinstance(line, dict):
                raise ValueError("not a JSON object")
            if "record" in line:
                record = _parse_record(line, record)
                # Other prompts, such as those for drafts of dialogues, are answered with free text.
                asks_for_labels = _asks_for_labels(record)
            elif record is not None:
                stored.append(_parse_prediction(line, asks_for_labels=asks_for_labels))
        except ValueError as error:
            reason = str(error)[:300].rstrip(".")
            raise JournalError(
                f"{paths.shown(path)}, line {number}: the line can't be read ({reason}). "
                "Restore the file, or move it away and run again."
            ) from error
        if record is None:
            break
    if record is None:
        raise _no_header(path)
    return record, stored


def _parse_record(line: dict[str, Any], before: Record | None) -> Record:
    try:
        record = Record.model_validate(line["record"])
    except ValidationError as error:
        raise ValueError(faults(error, Record)) from None
    if line.get("identity") != record.identity:
        raise ValueError("a record that does not match its identity")
    if before is not None and before.identity != record.identity:
        raise ValueError("the header of another run")
    return record


def _asks_for_labels(record: Record) -> bool:
    try:
        return set(load_template(record.prompt, slots=None).slots) >= DETECTION_SLOTS
    except RegistryError:
        # The template exists only on the machine of the run.
        return True


def _parse_prediction(line: dict[str, Any], *, asks_for_labels: bool) -> Prediction:
    # Older versions named parameters here that a service had refused.
    line.pop("dropped", None)
    mask = parse(str(line.pop("labels", "")))
    try:
        prediction = PREDICTION.validate_python(line | {"mask": mask})
    except ValidationError as error:
        raise ValueError(faults(error, Prediction)) from None
    outcome = prediction.outcome
    read = read_answer(prediction.answer)
    # With a reason, the engine knew more than the text shows, such as that it was truncated.
    parsed = outcome is Outcome.OK or (outcome is Outcome.UNPARSED and prediction.reason is None)
    edited = parsed and asks_for_labels and read != (outcome, mask)
    if edited or (mask and (outcome is not Outcome.OK or read[1] != mask)):
        raise ValueError(
            f"{outcome}, {format_mask(mask)}, but its answer reads as {read[0]}, "
            f"{format_mask(read[1])}: one of them was edited, or a version with other parsing "
            "rules wrote the line"
        )
    return prediction


def _read_lines(path: Path, most: int | None = None) -> list[bytes]:
    """Reads the lines of a journal, or the first ones; the last item is empty or incomplete."""
    try:
        with path.open("rb") as file:
            text = file.read() if most is None else b"".join(islice(file, most))
        return text.split(b"\n")
    except FileNotFoundError:
        raise JournalError(
            f"{paths.shown(path)}: there is no journal. Make it with `cradle infer`."
        ) from None
    except OSError as error:
        raise JournalError(
            f"{paths.shown(path)}: can't be read ({error.strerror}). Name the file of a journal."
        ) from None


def _no_header(path: Path) -> JournalError:
    return JournalError(
        f"{paths.shown(path)}: the first line is not the header of a journal. "
        "Choose another path for the run, or move the file away."
    )


def _of_same_file(before: Record, now: Record, path: Path) -> Record:
    """Refuses another corpus file of the same name; a copy with the same content is accepted."""
    if not before.is_of_another_file(now.corpus_file):
        return now
    if before.corpus_fingerprint == now.corpus_fingerprint:
        return now.model_copy(update={"corpus_file": before.corpus_file})
    raise CorpusError(
        f"this journal is about another file called {now.corpus!r} (then "
        f"{before.corpus_fingerprint}, now {now.corpus_fingerprint})",
        path=paths.shown(path),
        hint="Rename this corpus file, use another `--out`, or move it back if it is that one.",
    )


def lock_journal(path: Path) -> AbstractContextManager[object]:
    """Locks a journal against other processes, from before it is read until all is written.

    Args:
        path: The journal, whether or not it exists; its folder is created.

    Raises:
        JournalError: If another process has the lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        # A separate file, because locking may empty the locked file.
        return FileLock(path.with_name(f".{path.name}.lock")).acquire(timeout=0)
    except Timeout:
        raise JournalError(
            f"{paths.shown(path)}: another process is writing this journal. "
            "Wait for it to end, or split the work with --shard."
        ) from None


# ---- Locations of journals -----------------------------------------------------------------


def journal_path(
    model: str,
    corpus: Corpus,
    history: History = "self",
    shard: str | None = None,
    out: Path | None = None,
    checksum: str | None = None,
) -> Path:
    """Gives the name of a run's journal.

    It is ``OUT/CORPUS/MODEL[.CHECKSUM][.HISTORY][.shard-I-of-N].jsonl``. :func:`.run_path` chooses
    the checksum.

    Corpus files of the same name share the path, which keeps it short. The journal records its
    corpus file and refuses another one.

    Args:
        model: Its id.
        corpus: The corpus.
        history: The labels that the history shows; the paper's ``self`` is left out of the name.
        shard: ``i/n``, if the run is one of several parts.
        out: Folder for runs; by default :data:`.paths.RUNS`.
        checksum: Checksum of the settings, if the name without it belongs to another run.

    Returns:
        The path, whether or not the journal exists.
    """
    parts = [model] if checksum is None else [model, checksum]
    if history != "self":
        parts.append(f"history-{history}")
    folder = (paths.RUNS if out is None else out) / corpus.name
    return shard_path(folder / f"{'.'.join(parts)}.jsonl", shard)


def shard_path(path: Path, shard: str | None) -> Path:
    """Gives the path of a shard ``i/n`` of a journal; without a shard, that of the journal."""
    if shard is None:
        return path
    return path.with_name("{}.shard-{}-of-{}.jsonl".format(path.stem, *parse_shard(shard)))


def journals_of(model: str, corpus: Corpus, history: History, folder: Path) -> list[Path]:
    """Lists the runs of a model id with any settings, that with the plain name first."""
    plain = journal_path(model, corpus, history, out=folder)
    name = re.compile(re.escape(model) + _CHECKSUM + re.escape(plain.name[len(model) :]))
    return [path for path in list_journals(plain.parent) if name.fullmatch(path.name)]


def list_journals(folder: Path) -> list[Path]:
    """Lists the runs in the folder of a corpus, those with a plain name before those with others.

    The path of a run in shards does not exist itself.
    """
    found = {joined_path(file) for file in visible_files(folder, "*.jsonl")}
    return sorted(found, key=lambda path: (re.sub(f"{_CHECKSUM}$", "", path.stem), path.stem))


def parse_shard(shard: str) -> tuple[int, int]:
    """Parses ``i/n``: the index of a shard from 0, and the number of shards.

    Raises:
        JournalError: If it is not of this form.
    """
    index, slash, count = shard.partition("/")
    if slash and index.isdecimal() and count.isdecimal() and int(index) < int(count):
        return int(index), int(count)
    raise JournalError(f"shard {shard!r}: expected i/n with i from 0 to n-1, such as 0/4")


def joined_path(path: Path) -> Path:
    """Gives the path of the joined journal of a shard; other paths are returned unchanged."""
    return path.with_name(f"{path.name.removesuffix('.jsonl').partition('.shard-')[0]}.jsonl")


def journal_files(path: Path) -> list[Path]:
    """Finds the files of a run: its journal, or else its existing shards.

    If there is neither a journal nor a shard, the path of the journal is returned; reading it then
    raises the error.
    """
    name = re.compile(re.escape(path.stem) + r"\.shard-(\d+)-of-\d+\.jsonl")
    candidates = [] if path.exists() else path.parent.glob("*.jsonl")
    shards = [(int(m[1]), file) for file in candidates if (m := name.fullmatch(file.name))]
    return [file for _, file in sorted(shards)] or [path]


def list_runs(*folders: Path) -> dict[str, list[str]]:
    """Lists the runs in some folders without reading them; a run may be unfinished.

    Returns:
        For each model id the names of the corpora, followed by ``other settings`` for a run whose
        name has a checksum, and by the history if it is not ``self``.
    """
    found: dict[str, list[str]] = {}
    for folder in folders:
        for file in visible_files(folder, "*/*.jsonl"):
            name, _, history = joined_path(file).stem.partition(".history-")
            model = re.sub(f"{_CHECKSUM}$", "", name)
            run = file.parent.name + ", other settings" * (model != name)
            run += f", history {history}" if history else ""
            runs = found.setdefault(model, [])
            runs += [run] if run not in runs else []
    return found
