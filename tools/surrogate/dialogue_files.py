"""Reads and checks the text files of the written dialogues.

``data/surrogate/dialogues/SPLIT/NNN.txt`` has fifty dialogues; ``test/001.txt`` has those from 50
to 99. A dialogue has header lines (``# id: test-0050``) and one line for each row of its plan:
``User: …``, ``Listener: …`` or ``- …`` for a row that continues the row above, with the labels at
the end of the line in brackets: ``[alert_past; confirm_SH_past]``. Blank lines separate dialogues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cradle_extras.construction.validators.content import forbidden_detail, identifying_detail
from cradle_extras.construction.validators.duplicates import words_of
from cradle_lib import paths
from cradle_lib.errors import CorpusError
from cradle_lib.labels import BITS
from tools.surrogate.plans import DIALOGUES, SPLITS, DialoguePlan, read_plans

#: Dialogues in one file.
SIZE: Final = 50
HEADERS: Final = ("id", "plan", "seed", "seed-changed", "alert-could-be")
SPEAKERS: Final = {"User:": "U", "Listener:": "L", "-": "-"}
# A row with at least this many words may not come twice in a dialogue.
SENTENCE: Final = 5

_ROW: Final = re.compile(r"(User:|Listener:|-)(?: (.*))?")
_LABELS: Final = re.compile(r"(.*?)(?:^| )\[([^\[\]]*)\]")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a dialogue: speaker (``U``, ``L`` or ``-``), text and labels."""

    speaker: str
    text: str
    labels: tuple[str, ...] = ()


@dataclass
class Written:
    """A dialogue as it is in a file."""

    id: str
    headers: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a file; ``row`` counts from 0 and is None for the dialogue as a whole."""

    path: Path
    dialogue: str
    row: int | None
    problem: str

    def __str__(self) -> str:
        """Names file, dialogue and row."""
        row = "" if self.row is None else f", row {self.row}"
        return f"{paths.shown(self.path)}: {self.dialogue}{row}: {self.problem}"


def file_paths() -> list[Path]:
    """Gives the paths of all files of the corpus, written or not."""
    found = {
        DIALOGUES / plan.split / f"{plan.dialogue // SIZE:03}.txt": None
        for plan in read_plans().values()
    }
    return list(found)


def file_plans(path: Path, plans: Mapping[str, DialoguePlan]) -> list[DialoguePlan]:
    """Gives the plans of the dialogues that belong in a file, from its folder and name."""
    split, name = path.parent.name, path.stem
    if split not in SPLITS or not re.fullmatch(r"\d{3}", name):
        raise CorpusError(
            "the file is not named SPLIT/NNN.txt",
            path=paths.shown(path),
            hint="Name it like test/000.txt.",
        )
    low = int(name) * SIZE
    found = [
        plan for plan in plans.values() if plan.split == split and low <= plan.dialogue < low + SIZE
    ]
    if not found:
        raise CorpusError(f"{split} has no dialogue {low}", path=paths.shown(path))
    return found


def load_dialogues(path: Path) -> list[Written]:
    """Reads a complete file.

    Raises:
        CorpusError: If anything differs from the plans or the rules; the message names file,
            dialogue and row of the first fault.
    """
    dialogues, faults = check_file(path)
    if faults:
        more = f" ({len(faults) - 1} more)" if len(faults) > 1 else ""
        raise CorpusError(
            f"{faults[0]}{more}", hint=f"Run `python -m tools.surrogate check {paths.shown(path)}`."
        )
    return dialogues


def check_file(path: Path) -> tuple[list[Written], list[Fault]]:
    """Reads a file and compares it with the plans and the rules.

    Args:
        path: The file, named ``SPLIT/NNN.txt``.

    Returns:
        The dialogues, and all faults.

    Raises:
        CorpusError: If the file has another name, or is not UTF-8 text.
    """
    if not path.exists():
        return [], [Fault(path, "no dialogue", None, "the file is missing")]
    plans = read_plans()
    dialogues, faults = _parse(path)
    expected = [plan.id for plan in file_plans(path, plans)]
    ids = [dialogue.id for dialogue in dialogues]
    faults += [
        Fault(path, name, None, "the dialogue is missing") for name in expected if name not in ids
    ]
    for at, dialogue in enumerate(dialogues):
        plan = plans.get(dialogue.id)
        if plan is None or dialogue.id not in expected:
            problem = "no such dialogue" if plan is None else "the dialogue belongs in another file"
            faults.append(Fault(path, dialogue.id, None, problem))
            continue
        if at and dialogue.id <= ids[at - 1]:
            faults.append(Fault(path, dialogue.id, None, f"it comes after {ids[at - 1]}"))
        faults += (
            Fault(path, dialogue.id, row, problem) for row, problem in _compare(dialogue, plan)
        )
    return dialogues, faults


def _parse(path: Path) -> tuple[list[Written], list[Fault]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = f"the file can't be read as UTF-8 text ({error})"
        raise CorpusError(problem, path=paths.shown(path)) from None
    dialogues: list[Written] = []
    faults: list[Fault] = []
    # Not splitlines(), which also splits at characters that may stand inside a line.
    for number, line in enumerate(text.split("\n"), start=1):
        current = dialogues[-1] if dialogues else None
        name, colon, value = line.removeprefix("# ").partition(": ")
        header = line.startswith("# ") and colon and name in HEADERS
        if not line.strip():
            continue
        if header and name == "id":
            dialogues.append(Written(value))
        elif current is None:
            problem = f"line {number} is outside a dialogue; one starts with '# id: …'"
            faults.append(Fault(path, "no dialogue", None, problem))
        elif header and not current.rows and name not in current.headers:
            current.headers[name] = value
        elif match := _ROW.fullmatch(line):
            current.rows.append(_row(match[1], match[2] or ""))
        else:
            problem = f"line {number} is neither a header nor a row: {line[:40]!r}"
            faults.append(Fault(path, current.id, len(current.rows), problem))
    return dialogues, faults


def _row(start: str, rest: str) -> Row:
    match = _LABELS.fullmatch(rest)
    text, labels = (match[1], tuple(match[2].split("; "))) if match else (rest, ())
    return Row(SPEAKERS[start], text, labels)


def _compare(dialogue: Written, plan: DialoguePlan) -> Iterator[tuple[int | None, str]]:
    """Gives the differences between a dialogue and its plan, and what no row may contain."""
    if (found := dialogue.headers.get("plan")) != plan.hash:
        yield None, f"the header says plan {found}, expected {plan.hash}"
    if not dialogue.headers.get("seed"):
        yield None, "there is no header '# seed: …'"
    types = [part for part in dialogue.headers.get("alert-could-be", "").split(",") if part.strip()]
    if any(label.startswith("alert") for label in plan.labels) and len(types) < 2:
        yield None, "it has an alert: the header '# alert-could-be: …' names two or more types"
    if len(dialogue.rows) != len(plan.rows):
        yield None, f"it has {len(dialogue.rows)} rows, the plan has {len(plan.rows)}"
    seen: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(dialogue.rows):
        if number < len(plan.rows):
            speaker, labels = plan.rows[number]
            if row.speaker != speaker:
                yield number, f"the speaker is {row.speaker}, the plan has {speaker}"
            if unknown := [label for label in row.labels if label not in BITS]:
                yield number, f"there is no label {unknown[0]!r}"
            elif row.labels != labels:
                yield number, f"labels {_listed(row.labels)}, the plan has {_listed(labels)}"
        yield from ((number, problem) for problem in _text_faults(row.text))
        words = tuple(words_of(row.text))
        if len(words) >= SENTENCE and words in seen:
            yield number, f"it repeats row {seen[words]}"
        seen.setdefault(words, number)


def _listed(labels: tuple[str, ...]) -> str:
    return "; ".join(labels) or "none"


def _text_faults(text: str) -> Iterator[str]:
    if not text.strip():
        yield "it has no text"
    elif text != " ".join(text.split()) or not text.isprintable():
        yield "it has a space at an end, two spaces in a row, or an invisible character"
    if bracket := re.search(r"[\[\]]", text):
        yield f"it has a bracket {bracket[0]!r}"
    if match := forbidden_detail().search(text.lower()):
        yield f"a detail that is left out here: {match[0]!r}"
    if detail := identifying_detail(text):
        yield f"{detail[0]}: {detail[1]!r}"
