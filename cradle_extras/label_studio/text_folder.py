"""Reads a corpus from a folder of text files, one dialogue each."""

from __future__ import annotations

from pathlib import Path

from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.corpus.release import build_corpus
from cradle_lib.errors import CorpusError
from cradle_lib.files import visible_files


def read_folder(folder: Path) -> Corpus:
    """Reads one dialogue from each text file of a folder, in the order of the file names.

    Args:
        folder: A folder of ``.txt`` files. Each line is a turn, ``User: …`` or ``Listener: …``. A
            line without either continues the line above; it is a separate row, about which no
            model is asked, so that labels belong on the first line. Empty lines are left out.

    Returns:
        The corpus, without gold labels, named after the folder. The names of the files are the ids
        of the dialogues.

    Raises:
        CorpusError: If there is no text file, or a file is empty, not UTF-8, unreadable, does not
            start with a speaker, or misspells a speaker, such as ``user:``.
    """
    rows: list[tuple[int, str, str]] = []
    ids: list[str] = []
    for file in visible_files(folder, "*.txt"):
        try:
            lines = file.read_text(encoding="utf-8-sig").split("\n")
        except UnicodeDecodeError as error:
            problem = f"byte {error.start} is not UTF-8"
            raise CorpusError(problem, path=file, hint="Save the file as UTF-8.") from None
        said = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
        own = [(turn, line, "") for turn, (_, line) in enumerate(said)]
        own_ids = [file.stem] * len(own)
        try:
            # Each file is checked separately first, so that an error names its file and line.
            build_corpus(own, file.stem, about={"dialogue_id": own_ids})
        except CorpusError as error:
            place = file if error.row is None else f"{file}:{said[error.row][0]}"
            raise CorpusError(error.problem, path=place, hint=error.hint) from None
        rows += own
        ids += own_ids
    if not rows:
        hint = "Put each dialogue into a separate file, ending in .txt."
        raise CorpusError("no text files found", path=folder, hint=hint)
    return build_corpus(rows, folder.resolve().name, about={"dialogue_id": ids})
