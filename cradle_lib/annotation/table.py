"""Annotations as a table: who gave which labels to which turn, in which round.

One :class:`Annotation` is one person's labels for one dialogue, with a mask for every turn,
also for those without labels: that somebody looked and found nothing is a result.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, get_args

import pandas as pd

from cradle_lib import labels
from cradle_lib.corpus.dialogue import Corpus, Dialogue
from cradle_lib.corpus.formats import read_columns
from cradle_lib.errors import AnnotationError, CorpusError, LabelError, compose
from cradle_lib.files import replacing

Role = Literal["annotator", "adjudicator", "senior"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
COLUMNS: Final = (
    "dialogue",
    "turn_id",
    "annotator",
    "team",
    "round",
    "role",
    "labels",
    "texts",
)


@dataclass(frozen=True, slots=True)
class Annotation:
    """One person's labels for one dialogue.

    Attributes:
        dialogue: Id of the dialogue, such as ``d0007``.
        annotator: Who labelled.
        team: The team that the dialogue was given to, also where its adjudicator
            belongs to the other one.
        round: Its round, from 1.
        role: ``annotator`` (one of two), ``adjudicator`` or ``senior``.
        masks: The labels of every turn, in order.
    """

    dialogue: str
    annotator: str
    team: str
    round: int
    role: Role
    masks: tuple[int, ...]

    @property
    def place(self) -> str:
        """Names the annotation in messages."""
        return f"dialogue {self.dialogue}, {self.role} {self.annotator}"


@dataclass(frozen=True)
class Annotations:
    """The annotations of one corpus.

    Attributes:
        corpus: The dialogues. Their own labels play no part.
        entries: The annotations, sorted by dialogue, role and annotator.
    """

    corpus: Corpus
    entries: tuple[Annotation, ...]

    def __post_init__(self) -> None:
        """Refuses annotations that do not fit the corpus, and doubled ones."""
        turns = {dialogue.id: len(dialogue.turns) for dialogue in self.corpus}
        seen: set[tuple[str, str]] = set()
        for entry in self.entries:
            if entry.dialogue not in turns:
                raise AnnotationError(f"{entry.place}: {self.corpus.name} has no such dialogue.")
            if len(entry.masks) != turns[entry.dialogue]:
                raise AnnotationError(
                    f"{entry.place}: labels for {len(entry.masks)} turns, the dialogue has "
                    f"{turns[entry.dialogue]}. Are these annotations of another corpus?"
                )
            if (entry.dialogue, entry.annotator) in seen:
                raise AnnotationError(
                    f"{entry.place}: annotated twice by the same person. Keep one of the two."
                )
            seen.add((entry.dialogue, entry.annotator))

    @classmethod
    def of(cls, corpus: Corpus, entries: Iterable[Annotation]) -> Annotations:
        """Collects annotations in the fixed order.

        Raises:
            AnnotationError: If one does not fit the corpus, or is doubled.
        """
        return cls(
            corpus,
            tuple(sorted(entries, key=lambda e: (e.dialogue, ROLES.index(e.role), e.annotator))),
        )

    @cached_property
    def by_dialogue(self) -> dict[str, tuple[Annotation, ...]]:
        """The annotations of each dialogue that has any, in the order of the corpus."""
        found: dict[str, list[Annotation]] = {dialogue.id: [] for dialogue in self.corpus}
        for entry in self.entries:
            found[entry.dialogue].append(entry)
        return {name: tuple(entries) for name, entries in found.items() if entries}

    @cached_property
    def dialogues(self) -> dict[str, Dialogue]:
        """The dialogues of the corpus by id."""
        return {dialogue.id: dialogue for dialogue in self.corpus}

    @cached_property
    def teams(self) -> tuple[str, ...]:
        """The teams, sorted."""
        return tuple(sorted({entry.team for entry in self.entries}))

    @cached_property
    def groups(self) -> tuple[tuple[str, int], ...]:
        """The pairs of a team and a round that occur, sorted."""
        return tuple(sorted({(entry.team, entry.round) for entry in self.entries}))

    def to_frame(self) -> pd.DataFrame:
        """Gives the annotations as a tidy data frame.

        Returns:
            One row for each annotation and turn, also for turns without labels.

            - ``dialogue`` (str): the dialogue's id; ``turn`` (int): ``turn_id``, from 0.
            - ``annotator`` (str), ``team`` (str: the one that the dialogue was given to),
              ``round`` (int, from 1), ``role`` (str: ``annotator``, ``adjudicator``, ``senior``).
            - ``labels`` (str): labels joined by ``; ``, or ``none``; ``mask`` (uint16): the same
              as bits.
            - ``user_turn`` (bool): whether it is a turn on which a model would be asked.
        """
        rows = [
            (e.dialogue, turn.turn_id, e.annotator, e.team, e.round, e.role, mask, turn.asked)
            for e in self.entries
            for turn, mask in zip(self.dialogues[e.dialogue].turns, e.masks, strict=True)
        ]
        frame = pd.DataFrame(rows, columns=[*COLUMNS[:6], "mask", "user_turn"])
        frame.insert(6, "labels", [labels.format_mask(mask) for mask in frame["mask"]])
        frame = frame.rename(columns={"turn_id": "turn"})
        texts = dict.fromkeys(("dialogue", "annotator", "team", "role", "labels"), str)
        return frame.astype(
            texts | {"turn": int, "round": int, "mask": "uint16", "user_turn": bool}
        )


def texts_fingerprint(corpus: Corpus) -> str:
    """Twelve hexadecimal digits over what is said, whoever labelled it.

    Unlike the corpus' own fingerprint it stays the same when labels change, so that it can
    tie annotations to the dialogues they were made on.
    """
    digest = hashlib.sha256()
    for turn in corpus.turns:
        speaker = "" if turn.continues else turn.speaker
        row = f"{turn.turn_id}\x1f{speaker}\x1f{turn.text}\x1e"
        digest.update(row.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:12]


def write_annotations(annotations: Annotations, path: Path) -> None:
    """Writes a table with one row for each annotation and turn.

    Args:
        annotations: What to write.
        path: A ``.parquet`` or ``.csv`` file; written to a temporary name first.

    Raises:
        AnnotationError: If the ending is another one.
    """
    frame = annotations.to_frame().rename(columns={"turn": "turn_id"})
    frame["texts"] = texts_fingerprint(annotations.corpus)
    save_table(frame[list(COLUMNS)], path)


def save_table(frame: pd.DataFrame, path: Path) -> None:
    """Saves a table as its ending says, to a temporary name first.

    Raises:
        AnnotationError: If the ending is neither ``.parquet`` nor ``.csv``.
        CradleError: If the file can't be written.
    """
    check_ending(path)
    with replacing(path) as part:
        if path.suffix == ".parquet":
            frame.to_parquet(part, index=False, compression="zstd")
        else:
            frame.to_csv(part, index=False, lineterminator="\n")


def check_ending(path: Path) -> None:
    """Refuses a name that no table can be saved under, before any work is done for it.

    Raises:
        AnnotationError: If the ending is neither ``.parquet`` nor ``.csv``.
    """
    if path.suffix not in (".parquet", ".csv"):
        raise AnnotationError(
            compose(f"unknown ending {path.suffix!r}", path=path, hint="Use .parquet or .csv.")
        )


def read_annotations(path: Path, corpus: Corpus) -> Annotations:
    """Reads a table that :func:`write_annotations` wrote.

    Args:
        path: The table.
        corpus: The dialogues that were labelled.

    Returns:
        The annotations.

    Raises:
        AnnotationError: If the table is missing or damaged, lacks a turn, or belongs to
            another corpus.
    """
    if not path.is_file():
        raise AnnotationError(
            compose("no such file", path=path, hint="Write it with `cradle annotate import`.")
        )
    check_ending(path)
    try:
        columns = read_columns(path, COLUMNS, ())
    except CorpusError as error:
        hint = "Write the table with `cradle annotate import`."
        raise AnnotationError(compose(error.problem, path=path, row=error.row, hint=hint)) from None
    rows = list(zip(*(columns[name] for name in COLUMNS), strict=True))
    return Annotations.of(corpus, _entries(rows, texts_fingerprint(corpus), path))


def _entries(rows: Sequence[tuple[Any, ...]], texts: str, path: Path) -> list[Annotation]:
    entries: dict[tuple[str, str, str, int, Role], list[int]] = {}
    for row, (dialogue, turn_id, annotator, team, round_, role, cell, found) in enumerate(rows):
        if found != texts:
            raise AnnotationError(
                compose(
                    f"made on texts {str(found)[:40]}, the corpus has texts {texts}",
                    path=path,
                    row=row,
                    hint="Name the corpus that was exported for annotation.",
                )
            )
        try:
            key = (str(dialogue), str(annotator), str(team), _whole(round_), _role(role))
            number, mask = _whole(turn_id), labels.parse(str(cell))
        except (LabelError, ValueError) as error:
            raise AnnotationError(compose(str(error), path=path, row=row)) from None
        masks = entries.setdefault(key, [])
        if number != len(masks):
            raise AnnotationError(
                compose(f"turn_id is {number}, expected {len(masks)}", path=path, row=row)
            )
        masks.append(mask)
    return [Annotation(*key, tuple(masks)) for key, masks in entries.items()]


def _whole(value: Any) -> int:
    # A text of thousands of digits, an infinity and a date are no numbers here.
    if re.fullmatch(r"[0-9]{1,9}", str(value)):
        return int(value)
    raise ValueError(f"found {str(value)[:40]!r}, expected a whole number")


def _role(name: Any) -> Role:
    for role in ROLES:
        if name == role:
            return role
    raise ValueError(f"role is {str(name)[:40]!r}, expected one of {', '.join(ROLES)}")
