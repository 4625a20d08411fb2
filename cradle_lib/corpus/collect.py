"""Reads a corpus from a folder of text files, and writes a corpus in the release's format."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from cradle_lib.corpus.dialogue import Corpus, valid_unicode
from cradle_lib.corpus.formats import COLUMNS, META, brief
from cradle_lib.corpus.release import build_corpus, misspelt_speaker
from cradle_lib.corpus.text_formats import read_text
from cradle_lib.errors import CorpusError
from cradle_lib.files import replacing, visible_files
from cradle_lib.labels import format_mask


def read_folder(folder: Path) -> Corpus:
    """Reads one dialogue from each text file of a folder, in the order of the file names.

    Args:
        folder: A folder of ``.txt`` files. Each line is a turn, ``User: …`` or ``Listener: …``. A
            line without either continues the line above; it is a separate row, about which no
            model is asked, so that labels belong on the first line. Empty lines are left out.

    Returns:
        The corpus, without labels, named after the folder.

    Raises:
        CorpusError: If there is no such folder or no text file in it, or a file is empty, not
            UTF-8, unreadable, or does not start with a speaker; or if a line misspells one, such
            as ``user:``.
    """
    files = visible_files(folder, "*.txt")
    if not files:
        raise CorpusError(
            "no text files found",
            path=folder,
            hint="Put each dialogue into a file of its own, ending in .txt.",
        )
    rows: list[tuple[int, str, str]] = []
    for file in files:
        lines = read_text(file).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for number, line in enumerate(lines, start=1):
            if slip := misspelt_speaker(line):
                raise CorpusError(
                    f"found {brief(slip)}, expected 'User:' or 'Listener:'",
                    path=f"{file}:{number}",
                    hint="Correct the line; as it is it would continue the turn above.",
                )
        said = (line.strip() for line in lines if line.strip())
        own = [(turn, line, "none") for turn, line in enumerate(said)]
        # Each file alone first, so that a mistake is reported with its name.
        build_corpus(own, file.stem, file)
        rows += own
    return build_corpus(rows, folder.resolve().name)


def write_release(corpus: Corpus, path: Path) -> None:
    """Writes a corpus in the release's format, as :func:`save_table` does.

    Own ids, scenarios and timings of the dialogues are written if they are known.

    Raises:
        CorpusError: If a text contains a lone surrogate (half a character), which UTF-8 can't
            encode.
    """
    broken = [turn.row for turn in corpus.turns if valid_unicode(turn.text) != turn.text]
    if broken:
        problem, hint = "the text holds half a character", "Correct it there."
        raise CorpusError(problem, path=corpus.path, row=broken[0], hint=hint)
    rows = [
        (
            turn.turn_id,
            turn.text if turn.continues else f"{turn.speaker}: {turn.text}",
            format_mask(turn.mask),
        )
        for turn in corpus.turns
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    about: dict[str, list[str]] = {name: corpus.meta[name] for name in META if name in corpus.meta}
    if any(dialogue.own_id is not None for dialogue in corpus):
        about = {"dialogue_id": [dialogue.id for dialogue in corpus], **about}
    for name, values in about.items():
        frame[name] = np.repeat(values, [len(dialogue.turns) for dialogue in corpus])
    # Quotes around all texts: csv does not quote a text with a lone carriage return.
    save_table(frame, path, csv.QUOTE_NONNUMERIC)


def save_table(frame: pd.DataFrame, path: Path, quoting: Literal[0, 2] = csv.QUOTE_MINIMAL) -> None:
    """Saves a table as parquet or CSV by the name's ending, atomically.

    Raises:
        CorpusError: If the ending is neither ``.parquet`` nor ``.csv``.
        CradleError: If the file can't be written.
    """
    check_ending(path)
    with replacing(path) as part:
        if path.suffix == ".parquet":
            frame.to_parquet(part, index=False, compression="zstd")
        else:
            frame.to_csv(part, index=False, lineterminator="\n", quoting=quoting)


def check_ending(path: Path) -> None:
    """Refuses a name with an unknown ending, before any work is done."""
    if path.suffix not in (".parquet", ".csv"):
        raise CorpusError(
            f"unknown ending {path.suffix!r}", path=path, hint="Use .parquet or .csv."
        )
