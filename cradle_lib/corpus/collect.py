"""From a folder of text files to a corpus, and from a corpus to a file in the release's format."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.corpus.formats import COLUMNS, LARGEST, META, brief, not_utf8
from cradle_lib.corpus.release import build_corpus, misspelt_speaker
from cradle_lib.errors import CorpusError
from cradle_lib.files import read_bounded, replacing
from cradle_lib.labels import format_mask

_ENDINGS: Final = (".parquet", ".csv")


def read_folder(folder: Path) -> Corpus:
    """Reads one dialogue from each text file of a folder, in the order of their names.

    Args:
        folder: Holds ``.txt`` files. Each line is a turn, ``User: …`` or ``Listener: …``; a
            line without either continues the one above and is a row of its own, where no model
            is asked: labels belong on the first line. Empty lines are left out.

    Returns:
        The corpus, without labels, named after the folder.

    Raises:
        CorpusError: If there is no such folder or no text file in it, or a file is empty, not
            UTF-8, unreadable, or does not start with a speaker; or if a line misspells one, such
            as ``user:``.
    """
    files = sorted(folder.glob("*.txt")) if folder.is_dir() else []
    if not files:
        raise CorpusError(
            "no text files found",
            path=folder,
            hint="Put each dialogue into a file of its own, ending in .txt.",
        )
    dialogues = []
    for index, file in enumerate(files):
        try:
            text = read_bounded(file, LARGEST).decode("utf-8-sig")
            lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        except UnicodeDecodeError as error:
            raise not_utf8(file, error) from None
        except OSError as error:
            raise CorpusError(
                f"can't be read ({error.strerror})",
                path=file,
                hint="Each .txt in the folder must be a readable text file.",
            ) from None
        for number, line in enumerate(lines, start=1):
            if slip := misspelt_speaker(line):
                raise CorpusError(
                    f"found {brief(slip)}, expected 'User:' or 'Listener:'",
                    path=f"{file}:{number}",
                    hint="Correct the line; as it is it would continue the turn above.",
                )
        said = [line.strip() for line in lines if line.strip()]
        dialogues.append((file, [(turn, line, "none") for turn, line in enumerate(said)]))
        # Each file alone first, so that a mistake is reported with its name.
        build_corpus(dialogues[index][1], file.stem, file)
    return build_corpus((row for _, rows in dialogues for row in rows), folder.resolve().name)


def write_release(corpus: Corpus, path: Path) -> None:
    """Writes a corpus in the release's format, to a temporary name first.

    Ids of the dialogues' own, and scenarios and timings that are known, become columns too.

    Args:
        corpus: What to write.
        path: A ``.parquet`` or ``.csv`` file.

    Raises:
        CorpusError: If the ending is another one.
        CradleError: If the file can't be written.
    """
    if path.suffix not in _ENDINGS:
        raise CorpusError(
            f"unknown ending {path.suffix!r}, expected one of {', '.join(_ENDINGS)}", path=path
        )
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
    with replacing(path) as part:
        if path.suffix == ".parquet":
            frame.to_parquet(part, index=False, compression="zstd")
        else:
            # Quotes around all texts: csv leaves out those of a text with a lone carriage return.
            frame.to_csv(part, index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
