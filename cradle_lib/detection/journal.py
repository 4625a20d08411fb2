"""The journal: an append-only file with one line per answer.

The first line is a header with the record of the run, each further line one prediction. Every line
is written as soon as there is an answer, so that a killed process loses at most the turn in flight,
and is synced to disk within a second. A torn last line is dropped on resume. If a turn occurs
twice, the later line counts.

A run that is resumed under changed circumstances (another commit, another version of the corpus)
writes a further header; the last header counts. A header with other settings may follow only if
every question before it failed, for instance because of a mistyped name. The lines before it are
then ignored.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Final, Self

from filelock import FileLock, Timeout

from cradle_lib import paths
from cradle_lib.detection.journal_lines import no_header, read_lines, to_bytes
from cradle_lib.detection.parsing import Outcome
from cradle_lib.detection.session import Prediction
from cradle_lib.errors import CorpusError, JournalError, OtherRunError
from cradle_lib.files import require_ordinary
from cradle_lib.record import Record

_SYNC_SECONDS: Final = 1.0
_START: Final = b'{"record": {'


class Journal:
    """A journal that is being written; made by :meth:`open`, closed by ``with``."""

    def __init__(self, path: Path, file: FileIO, stored: list[Prediction]) -> None:
        self.path, self._file = path, file
        self._held = ExitStack()
        self._synced = time.monotonic()
        self._stored: dict[str, dict[int, Prediction]] = {}
        for prediction in stored:
            self._stored.setdefault(prediction.dialogue, {})[prediction.turn] = prediction

    @classmethod
    def open(cls, path: Path, record: Record) -> Journal:
        """Opens a journal for a run, new or to be resumed, and locks it.

        Args:
            path: The file; its folder is created.
            record: The record of the run that is about to start.

        Returns:
            The journal, with the answers of earlier starts.

        Raises:
            JournalError: If the file belongs to a run with other settings (the message
                names them), if another process is writing it, or if it is damaged.
            CorpusError: If it holds answers about another file of the same name.
        """
        if path.exists() and not path.is_file():
            raise JournalError(
                f"{paths.shown(path)}: can't be a journal, which is a file. Choose another place."
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            stack.callback(lock_journal(path).release)
            file = stack.enter_context(path.open("a+b", buffering=0))
            before, stored, size = _read(path)
            file.seek(0)
            # A file that is no journal is refused here, before anything is cut off it.
            if before is None and not _START.startswith(file.read(len(_START))):
                raise no_header(path)
            if before is not None and before.identity != record.identity:
                _require_void(stored, before, record, path)
                before, stored = None, []
            if before is not None and stored:
                record = _of_same_file(before, record, path)
            if size < path.stat().st_size:
                file.truncate(size)
            journal = cls(path, file, stored)
            if before is None or before.model_copy(update={"started": record.started}) != record:
                journal._write(record)
                journal._sync()
            journal._held = stack.pop_all()
        return journal

    def stored(self, dialogue: str) -> list[Prediction]:
        """Gives the answers of earlier starts about a dialogue, in the order of its turns."""
        return [p for _, p in sorted(self._stored.get(dialogue, {}).items())]

    def append(self, prediction: Prediction) -> None:
        """Writes one prediction. A process that is killed after this call has not lost it."""
        self._write(prediction)
        if time.monotonic() - self._synced >= _SYNC_SECONDS:
            self._sync()

    def close(self) -> None:
        """Syncs the file to disk and releases the lock; may be called again."""
        if not self._file.closed:
            self._sync()
            self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, line: Record | Prediction) -> None:
        data = to_bytes(line)
        while data:
            data = data[os.write(self._file.fileno(), data) :]

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()


def read_journal(path: Path) -> tuple[Record, list[Prediction]]:
    """Reads a journal, finished or not.

    Args:
        path: The file.

    Returns:
        The last record, and one prediction per turn, ordered by dialogue and turn. A torn
        last line is left out.

    Raises:
        JournalError: As :func:`read_answers`.
    """
    record, stored = read_answers(path)
    latest = {(p.dialogue, p.turn): p for p in stored}
    return record, [latest[place] for place in sorted(latest)]


def read_answers(path: Path) -> tuple[Record, list[Prediction]]:
    """Reads the last record and every answer, in the order in which they were written.

    Answers that a later one replaced are included: all were paid for.

    Raises:
        JournalError: If there is no such file, it can't be read (a folder, for one), it has no
            header, or a line is damaged.
    """
    record, stored, _ = _read(path)
    if record is None:
        raise no_header(path)
    return record, stored


def _read(path: Path) -> tuple[Record | None, list[Prediction], int]:
    """Gives the last record, the answers under its settings, and the size of the whole lines."""
    record: Record | None = None
    stored: list[Prediction] = []
    size = 0
    for line, raw in each_line(path):
        size += len(raw)
        if isinstance(line, Prediction):
            stored.append(line)
            continue
        if record is not None and record.identity != line.identity:
            _require_void(stored, record, line, path)
            stored = []
        record = line
    return record, stored, size


def last_record(path: Path) -> Record:
    """Reads the last header only.

    Raises:
        JournalError: As :func:`read_answers`.
    """
    header = None
    for raw in _whole_lines(path):
        header = raw if header is None or raw.startswith(_START) else header
    for record, _ in read_lines([header] if header else [], path):
        assert isinstance(record, Record)
        return record
    raise no_header(path)


def each_line(path: Path) -> Iterator[tuple[Record | Prediction, bytes]]:
    """Reads a journal line by line.

    Yields:
        What :func:`.read_lines` reads in each whole line.

    Raises:
        JournalError: As :func:`read_answers`.
    """
    yield from read_lines(_whole_lines(path), path)


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Gives the lines of a journal with their line breaks; a torn last line is left out."""
    with open_journal(path) as file:
        yield from (raw for raw in file if raw.endswith(b"\n"))


@contextmanager
def open_journal(path: Path) -> Iterator[BufferedReader]:
    """Opens a journal to read it.

    Raises:
        JournalError: If there is none, or it is no file that can be read.
    """
    try:
        require_ordinary(path)
        with path.open("rb") as file:
            yield file
    except FileNotFoundError:
        raise JournalError(
            f"{paths.shown(path)}: there is no journal. Make it with `cradle infer`."
        ) from None
    except OSError as error:
        raise JournalError(
            f"{paths.shown(path)}: can't be read ({error.strerror}). Name the file of a journal."
        ) from None


def _require_void(stored: Sequence[Prediction], before: Record, now: Record, path: Path) -> None:
    """Refuses other settings, unless every question before them failed."""
    if all(prediction.outcome is Outcome.FAILED for prediction in stored):
        return
    details = "; ".join(
        f"{name} is {there!r} there and {here!r} here"
        for name, there, here in before.differences(now)
    )
    raise OtherRunError(
        f"{paths.shown(path)}: this journal belongs to another run: {details}. "
        "Choose another place for this run, or move the file away."
    )


def _of_same_file(before: Record, now: Record, path: Path) -> Record:
    """Refuses another file of the same name; a copy with the same content may go on."""
    if not before.is_of_another_file(now.corpus_file):
        return now
    if before.corpus_fingerprint == now.corpus_fingerprint:
        return now.model_copy(update={"corpus_file": before.corpus_file})
    # Not a JournalError: the journal of a baseline would then be replaced.
    raise CorpusError(
        f"this journal is about another file called {now.corpus!r} (then "
        f"{before.corpus_fingerprint}, now {now.corpus_fingerprint})",
        path=paths.shown(path),
        hint="Rename this corpus file, use another `--out`, or move it back if it is that one.",
    )


def lock_journal(path: Path) -> FileLock:
    """Locks a journal against other processes.

    Raises:
        JournalError: If another process is writing it.
    """
    # A file beside the journal, because locking a file may empty it.
    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise JournalError(
            f"{paths.shown(path)}: another process is writing this journal. "
            "Wait for it to end, or split the work with --shard."
        ) from None
    return lock
