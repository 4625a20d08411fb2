"""Corpora, dialogues and turns.

Each row of the release is one *turn*, so that row numbers are kept. A *user turn* is a row that
starts with ``User:``; a model is asked about those only. A row without a speaker continues the
utterance above it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from cradle_lib import paths
from cradle_lib.labels import format_mask, union

if TYPE_CHECKING:
    import pandas as pd

Speaker = Literal["User", "Listener"]


def valid_unicode(text: str) -> str:
    """Replaces lone surrogates, which data frames can't store, by U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass(frozen=True, slots=True)
class Turn:
    """One row of a corpus.

    Attributes:
        row: Zero-based row in the file.
        turn_id: Zero-based position in the dialogue.
        speaker: Who speaks; a continuation has the speaker of the row above.
        text: The text without the speaker's name.
        mask: The gold labels on this row.
        continues: Whether the row continues the utterance above it.
    """

    row: int
    turn_id: int
    speaker: Speaker
    text: str
    mask: int
    continues: bool = False

    @property
    def asked(self) -> bool:
        """Whether a model is asked about this turn: a user turn that starts an utterance."""
        return self.speaker == "User" and not self.continues

    def __repr__(self) -> str:
        """Describes the turn without its text."""
        more = ", continued" if self.continues else ""
        return (
            f"<Turn {self.turn_id} of the {self.speaker}{more}: {len(self.text):,} characters, "
            f"{format_mask(self.mask)}>"
        )


@dataclass(frozen=True)
class Dialogue:
    """One dialogue.

    Attributes:
        index: Zero-based position in the corpus.
        turns: All rows, in order.
        own_id: Its ``dialogue_id`` in the file, if the file has that column.
        labelled: Whether gold labels were given, of which any turn may have none. Only labelled
            dialogues are scored.
    """

    index: int
    turns: tuple[Turn, ...]
    own_id: str | None = None
    labelled: bool = True

    def __repr__(self) -> str:
        """Describes the dialogue without its text."""
        return f"<Dialogue {self.id}: {len(self.turns)} turns, {len(self.user_turns)} user turns>"

    @property
    def id(self) -> str:
        """The dialogue's own id, or one made from its position, such as ``d0007``."""
        return f"d{self.index:04d}" if self.own_id is None else self.own_id

    @cached_property
    def user_turns(self) -> tuple[Turn, ...]:
        """The turns that a model is asked about."""
        return tuple(turn for turn in self.turns if turn.asked)

    @cached_property
    def mask(self) -> int:
        """The union of the gold labels of all rows."""
        return union(turn.mask for turn in self.turns)

    def relabelled(self, masks: Sequence[int]) -> Dialogue:
        """Copies the dialogue with other gold labels: one mask for each row."""
        turns = zip(self.turns, masks, strict=True)
        relabelled = tuple(replace(turn, mask=mask) for turn, mask in turns)
        return replace(self, turns=relabelled, labelled=True)

    def utterance(self, turn: Turn) -> str:
        """Joins a turn's text and the rows that continue it, one per line."""
        lines = [turn.text]
        for later in self.turns[turn.turn_id + 1 :]:
            if not later.continues:
                break
            lines.append(later.text)
        return "\n".join(lines)


@dataclass(frozen=True)
class Corpus:
    """Dialogues in order, with the arrays that scoring works on.

    Attributes:
        name: Name on pages and in signatures.
        dialogues: All dialogues.
        path: The file it was read from, if any.
        meta: Further columns with one value for each dialogue: ``scenario`` and ``timing``, if
            they are known.
        synthetic: Whether this is the project's own surrogate, or a part of it. Pages show text
            only of such a corpus.
    """

    name: str
    dialogues: tuple[Dialogue, ...]
    path: Path | None = None
    meta: dict[str, list[str]] = field(default_factory=dict)
    synthetic: bool = False

    def __repr__(self) -> str:
        """Gives name and size, without text of dialogues."""
        return (
            f"<Corpus {self.name}: {len(self):,} dialogues, {len(self.turns):,} turns, "
            f"{len(self.gold):,} user turns, fingerprint {self.fingerprint}>"
        )

    def __len__(self) -> int:
        """Number of dialogues."""
        return len(self.dialogues)

    def __iter__(self) -> Iterator[Dialogue]:
        """Iterates over the dialogues in order."""
        return iter(self.dialogues)

    @cached_property
    def by_id(self) -> dict[str, Dialogue]:
        """The dialogues by id."""
        return {dialogue.id: dialogue for dialogue in self.dialogues}

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """All rows of all dialogues."""
        return tuple(turn for dialogue in self.dialogues for turn in dialogue.turns)

    @cached_property
    def gold(self) -> NDArray[np.uint16]:
        """Gold masks of the user turns, in order. Shape (user turns,)."""
        return np.array([t.mask for t in self.turns if t.asked], dtype=np.uint16)

    @cached_property
    def dialogue_of(self) -> NDArray[np.int64]:
        """For each user turn, the position of its dialogue. Shape (user turns,)."""
        sizes = [len(dialogue.user_turns) for dialogue in self.dialogues]
        return np.repeat(np.arange(len(sizes)), sizes)

    @cached_property
    def fingerprint(self) -> str:
        """Checksum of all texts, labels and boundaries: twelve hexadecimal digits."""
        return self._digest(lambda turn, given: f"\x1f{turn.mask if given else ''}")

    @cached_property
    def texts_fingerprint(self) -> str:
        """The same without the labels: identifies the dialogues of annotations."""
        return self._digest(lambda turn, given: "")

    def _digest(self, about: Callable[[Turn, bool], str]) -> str:
        digest = hashlib.sha256()
        for dialogue in self:
            for turn in dialogue.turns:
                speaker = "" if turn.continues else turn.speaker
                labels = about(turn, dialogue.labelled)
                row = f"{turn.turn_id}\x1f{speaker}\x1f{turn.text}{labels}\x1e"
                digest.update(row.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:12]

    def to_frame(self) -> pd.DataFrame:
        """Gives the corpus as a tidy data frame.

        Returns:
            One row for each turn.

            - ``dialogue`` (str): the dialogue's id; ``turn`` (int): ``turn_id``, from 0.
            - ``position`` (Int64): number of the user turn in the dialogue, from 1; missing for
              rows about which no model is asked.
            - ``row`` (int): row in the file, from 0.
            - ``speaker`` (str): ``User`` or ``Listener``; ``text`` (str): the text without it.
            - ``labels`` (str): gold labels joined by ``; ``, or ``none``; missing in a dialogue
              without gold labels. ``mask`` (uint16): the same as bits.
            - ``scenario``, ``timing`` (str): those of the dialogue, if the corpus has them.
        """
        import pandas as pd

        sizes = [len(dialogue.turns) for dialogue in self]
        turns = self.turns
        ids = [dialogue.id for dialogue in self for _ in dialogue.turns]
        given = np.repeat([dialogue.labelled for dialogue in self], sizes).astype(bool)
        frame = pd.DataFrame(
            {
                "dialogue": pd.Series(ids, dtype=str),
                "turn": pd.Series([t.turn_id for t in turns], dtype=np.int64),
                "row": pd.Series([t.row for t in turns], dtype=np.int64),
                "speaker": pd.Series([t.speaker for t in turns], dtype=str),
                "text": pd.Series([valid_unicode(t.text) for t in turns], dtype=str),
                "labels": pd.Series([format_mask(t.mask) for t in turns], dtype=str).where(given),
                "mask": pd.Series([t.mask for t in turns], dtype=np.uint16),
            }
        )
        asked = pd.Series([t.asked for t in turns], dtype=bool)
        counted = asked.astype("Int64").groupby(frame["dialogue"]).cumsum()
        frame.insert(2, "position", counted.where(asked))
        for name, column in self.meta.items():
            frame[name] = pd.Series(np.repeat(column, sizes), dtype=str)
        return frame

    @cached_property
    def labelled(self) -> Corpus:
        """The dialogues with gold labels, which are those that can be scored."""
        places = [place for place, dialogue in enumerate(self) if dialogue.labelled]
        if len(places) == len(self):
            return self
        return self.subset(places, f"{self.name}[{len(places)}]")

    @property
    def unlabelled_note(self) -> tuple[str, ...]:
        """Says how many dialogues have no gold labels; empty if all have them."""
        number = len(self) - len(self.labelled)
        if not number:
            return ()
        return (f"{number:,} of the {len(self):,} dialogues have no gold labels and no scores.",)

    @cached_property
    def unasked_labels(self) -> tuple[str, ...]:
        """Describes the effect of labels outside user turns; empty if there are none."""
        unasked = sum(turn.mask.bit_count() for turn in self.turns if not turn.asked)
        if not unasked:
            return ()
        asked = sum(any(turn.mask for turn in dialogue.user_turns) for dialogue in self)
        every = sum(dialogue.mask > 0 for dialogue in self)
        return (
            f"{unasked:,} gold label{'s are' if unasked > 1 else ' is'} not on user turns and so "
            f"not scored. {asked:,} of the {every:,} dialogues with gold labels have one on a user "
            "turn.",
        )

    @property
    def file_key(self) -> str | None:
        """Checksum of the file's path: twelve hexadecimal digits; ``None`` without a file.

        The key is kept when the file is edited, and distinguishes files of the same name. Inside
        the repository the path is relative to it, so that a copy of the repository has the same
        key.
        """
        if self.path is None:
            return None
        place = self.path.resolve()
        if place.is_relative_to(paths.ROOT):
            place = place.relative_to(paths.ROOT)
        return hashlib.sha256(str(place).encode("utf-8", "surrogateescape")).hexdigest()[:12]

    def subset(self, indices: Sequence[int], name: str) -> Corpus:
        """Selects dialogues, which keep their ``index`` and rows.

        Args:
            indices: Positions in :attr:`dialogues`, in the order of the subset.
            name: Name of the subset.

        Returns:
            A corpus of these dialogues.
        """
        meta = {key: [column[i] for i in indices] for key, column in self.meta.items()}
        dialogues = tuple(self.dialogues[i] for i in indices)
        return replace(self, name=name, dialogues=dialogues, meta=meta)
