"""Annotations as a table: who gave which labels to which turn, in which round.

One :class:`Annotation` is one person's labels for one dialogue, with a mask for every turn. Turns
without labels are included, because finding nothing is a result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, get_args

import pandas as pd

from cradle_lib import labels
from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.corpus.tables import read_columns, save_table
from cradle_lib.errors import CorpusError

Role = Literal["annotator", "adjudicator", "senior"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
COLUMNS: Final = ("dialogue", "turn_id", "annotator", "team", "round", "role", "labels", "texts")


@dataclass(frozen=True, slots=True)
class Annotation:
    """One person's labels for one dialogue.

    Attributes:
        dialogue: Id of the dialogue, such as ``d0007``.
        annotator: Who labelled.
        team: The team of the dialogue, also for an adjudicator from the other team.
        round: The round of the dialogue, from 1.
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
        corpus: The dialogues; their gold labels are not used.
        entries: The annotations, sorted by dialogue, role and annotator.
    """

    corpus: Corpus
    entries: tuple[Annotation, ...]

    def __post_init__(self) -> None:
        """Rejects annotations that do not fit the corpus, and duplicates."""
        seen: set[tuple[str, str]] = set()
        for entry in self.entries:
            if entry.dialogue not in self.corpus.by_id:
                raise CorpusError(f"{entry.place}: {self.corpus.name} has no such dialogue.")
            turns = len(self.corpus.by_id[entry.dialogue].turns)
            if len(entry.masks) != turns:
                raise CorpusError(
                    f"{entry.place}: labels for {len(entry.masks)} turns, the dialogue has "
                    f"{turns}. Are these annotations of another corpus?"
                )
            if (entry.dialogue, entry.annotator) in seen:
                raise CorpusError(
                    f"{entry.place}: annotated twice by the same person. Keep one of the two."
                )
            seen.add((entry.dialogue, entry.annotator))

    @classmethod
    def of(cls, corpus: Corpus, entries: Iterable[Annotation]) -> Annotations:
        """Collects annotations, sorted by dialogue, role and annotator."""
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
    def teams(self) -> tuple[str, ...]:
        """The teams, sorted."""
        return tuple(sorted({entry.team for entry in self.entries}))

    def to_frame(self) -> pd.DataFrame:
        """Gives the annotations as a tidy data frame.

        Returns:
            One row for each annotation and turn, also for turns without labels.

            - ``dialogue`` (str): the dialogue's id; ``turn`` (int): ``turn_id``, from 0.
            - ``annotator`` (str), ``team`` (str: the team of the dialogue), ``round`` (int, from
              1), ``role`` (str: ``annotator``, ``adjudicator``, ``senior``).
            - ``labels`` (str): labels joined by ``; ``, or ``none``; ``mask`` (uint16): the same
              as bits.
            - ``user_turn`` (bool): whether it is a turn about which a model is asked.
        """
        rows: list[tuple[object, ...]] = []
        for e in self.entries:
            about = (e.annotator, e.team, e.round, e.role)
            for turn, mask in zip(self.corpus.by_id[e.dialogue].turns, e.masks, strict=True):
                given = (labels.format_mask(mask), mask, turn.asked)
                rows.append((e.dialogue, turn.turn_id, *about, *given))
        columns = ["dialogue", "turn", *COLUMNS[2:7], "mask", "user_turn"]
        kinds: dict[str, Any] = {"turn": int, "round": int, "mask": "uint16", "user_turn": bool}
        return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(columns, str) | kinds)


def write_annotations(annotations: Annotations, path: Path) -> None:
    """Writes a table with one row for each annotation and turn.

    Args:
        annotations: The annotations.
        path: A ``.parquet`` or ``.csv`` file; written atomically.

    Raises:
        CorpusError: If the file has another ending.
    """
    frame = annotations.to_frame().rename(columns={"turn": "turn_id"})
    frame["texts"] = annotations.corpus.texts_fingerprint
    save_table(frame[list(COLUMNS)], path)


def read_annotations(path: Path, corpus: Corpus) -> Annotations:
    """Reads a table that :func:`write_annotations` wrote.

    Args:
        path: The table.
        corpus: The dialogues that were labelled.

    Returns:
        The annotations.

    Raises:
        CorpusError: If the table is missing or damaged, lacks a turn, or belongs to
            another corpus.
    """
    try:
        columns = read_columns(path, COLUMNS)
    except CorpusError as error:
        hint = "Write the table with `cradle annotate import`."
        raise CorpusError(error.problem, path=path, row=error.row, hint=hint) from None
    entries: dict[tuple[str, str, str, int, Role], list[int]] = {}
    texts = corpus.texts_fingerprint
    for row, cells in enumerate(zip(*(columns[name] for name in COLUMNS), strict=True)):
        dialogue, turn_id, annotator, team, round_, role, given, found = cells
        try:
            if found != texts:
                raise CorpusError(
                    f"made on texts {str(found)[:40]}, the corpus has the texts {texts}",
                    hint="Name the corpus that was exported for annotation.",
                )
            if role not in ROLES:
                known = ", ".join(ROLES)
                raise CorpusError(f"role is {str(role)[:40]!r}, expected one of {known}")
            key = (str(dialogue), str(annotator), str(team), _integer(round_), role)
            masks = entries.setdefault(key, [])
            if (number := _integer(turn_id)) != len(masks):
                raise CorpusError(f"turn_id is {number}, expected {len(masks)}")
            masks.append(labels.parse(str(given)))
        except CorpusError as error:
            raise CorpusError(error.problem, path=path, row=row, hint=error.hint) from None
    return Annotations.of(corpus, (Annotation(*key, tuple(m)) for key, m in entries.items()))


def _integer(value: Any) -> int:
    # Refuses infinities, dates, and texts of thousands of digits, which `int` can't read.
    if re.fullmatch(r"[0-9]{1,9}", str(value)):
        return int(value)
    raise CorpusError(f"found {str(value)[:40]!r}, expected a whole number")
