"""Predictions of a run as arrays, aligned to the user turns of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from cradle_lib import paths
from cradle_lib.arguments import checked
from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.corpus.dialogue import valid_unicode
from cradle_lib.detection.protocol.parsing import OUTCOMES, Outcome, needs_cleaning
from cradle_lib.detection.protocol.session import Prediction, Session
from cradle_lib.detection.runs.journal import journal_files, read_journal
from cradle_lib.detection.runs.shards import joined_record
from cradle_lib.errors import JournalError, NoRunError, RegistryError
from cradle_lib.labels import format_prediction
from cradle_lib.prompts import Template, load_template
from cradle_lib.record import Record

if TYPE_CHECKING:
    import pandas as pd

_CODES: Final = {outcome: code for code, outcome in enumerate(OUTCOMES)}


# Compared by identity, because arrays have no single truth value.
@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions of one run for every user turn of a corpus.

    Attributes:
        record: The record of the run (of its first shard).
        corpus: The corpus that the arrays are aligned to.
        masks: Labels of each user turn; 0 where the outcome is not ``ok``. uint16, shape
            (user turns,).
        outcomes: Index of each turn's outcome in ``OUTCOMES``. uint8, the same shape.
        answers: The raw text of each turn's answer.
        of_turns: Number of user turns of the corpus that was loaded; more than ``len(masks)`` if
            the run is partial or a sample.
        choices: For each turn, the log-probabilities at the branching points of its answer, if
            decoding was constrained; empty if they were not loaded.
        files: The journals that the run was loaded from.
    """

    record: Record
    corpus: Corpus
    masks: NDArray[np.uint16]
    outcomes: NDArray[np.uint8]
    answers: tuple[str, ...]
    of_turns: int
    choices: tuple[list[dict[str, float]] | None, ...] = ()
    files: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        """Names the run and its size; no answers, which may quote a dialogue."""
        turns = f"{len(self.masks):,} of {self.of_turns:,} user turns"
        counts = ", ".join(f"{n:,} {outcome}" for outcome, n in self.outcome_counts.items() if n)
        run = f"{self.record.model} over {self.record.corpus}, run {self.record.identity}"
        return f"<Predictions of {run}: {turns}{f', {counts}' if counts else ''}>"

    @property
    def covers_corpus(self) -> bool:
        """Whether the run covers the whole corpus."""
        return len(self.masks) == self.of_turns

    @property
    def is_finished(self) -> bool:
        """Whether all turns of the run's dialogues are answered."""
        chosen = self.record.dialogues
        return self.covers_corpus if chosen is None else len(self.corpus) >= len(chosen)

    @property
    def coverage(self) -> str:
        """Heading that describes the run's dialogues; equal only for the same dialogues."""
        corpus, turns = self.corpus, len(self.masks)
        part = f" of {self.of_turns:,}" if turns < self.of_turns else ""
        return (
            f"{corpus.name} ({corpus.fingerprint}): {len(corpus):,} "
            f"dialogue{'s' * (len(corpus) != 1)}, {turns:,}{part} user turns"
        )

    @property
    def ok(self) -> NDArray[np.bool_]:
        """Whether each turn's answer could be read. Shape (user turns,)."""
        return np.asarray(self.outcomes == _CODES[Outcome.OK])

    @property
    def outcome_counts(self) -> dict[Outcome, int]:
        """Number of turns with each of the four outcomes."""
        counts = np.bincount(self.outcomes, minlength=len(OUTCOMES))
        return {outcome: int(counts[code]) for code, outcome in enumerate(OUTCOMES)}

    @cached_property
    def labelled(self) -> Predictions:
        """The predictions of the dialogues with gold labels, which are those that can be scored."""
        labelled = self.corpus.labelled
        return self if labelled is self.corpus else self.subset(labelled)

    @cached_property
    def cleaned(self) -> int:
        """Number of ``ok`` answers that are not written as the prompt asks."""
        pairs = zip(self.answers, self.ok, strict=True)
        return sum(needs_cleaning(answer) for answer, ok in pairs if ok)

    def to_frame(self) -> pd.DataFrame:
        """Gives the run as a tidy data frame.

        Returns:
            One row for each user turn, in the order of the corpus.

            - ``dialogue`` (str): the dialogue's id.
            - ``turn`` (int): its ``turn_id``, from 0; ``position`` (int): which of the dialogue's
              user turns it is, from 1.
            - ``gold``, ``predicted`` (str): labels joined by ``; ``, or ``none``; ``predicted`` may
              also be ``unusable answer``, and ``gold`` is missing in a dialogue without gold
              labels. ``gold_mask``, ``predicted_mask`` (uint16): the same as
              bits, 0 for an unusable answer.
            - ``outcome`` (str): ``ok``, ``unparsed``, ``refused`` or ``failed``.
            - ``answer`` (str): the model's raw text.
            - ``scenario``, ``timing`` (str): those of the dialogue, if the corpus has them.

            ``attrs["system"]`` is the model's name.
        """
        import pandas as pd

        frame = self.corpus.to_frame()
        frame = frame[frame["position"].notna()].reset_index(drop=True)
        frame = frame.astype({"position": int}).rename(
            columns={"labels": "gold", "mask": "gold_mask"}
        )
        text = frame["dialogue"].dtype
        answers: dict[str, Any] = {
            "predicted": pd.Series(
                [
                    format_prediction(mask, usable=ok)
                    for mask, ok in zip(self.masks.tolist(), self.ok, strict=True)
                ],
                dtype=text,
            ),
            "predicted_mask": self.masks,
            "outcome": pd.Series([str(OUTCOMES[code]) for code in self.outcomes], dtype=text),
            "answer": pd.Series(list(map(valid_unicode, self.answers)), dtype=text),
        }
        frame = frame.drop(columns=["row", "speaker", "text"]).assign(**answers)
        frame.attrs["system"] = self.record.name
        return frame

    def subset(self, corpus: Corpus) -> Predictions:
        """Restricts the predictions to some of the dialogues.

        Args:
            corpus: A subset of :attr:`corpus`, made by :meth:`Corpus.subset`.

        Returns:
            Predictions aligned to the subset.
        """
        rows_of: dict[str, list[int]] = {dialogue.id: [] for dialogue in self.corpus}
        for row, position in enumerate(self.corpus.dialogue_of.tolist()):
            rows_of[self.corpus.dialogues[position].id].append(row)
        rows = [row for dialogue in corpus for row in rows_of[dialogue.id]]
        return replace(
            self,
            corpus=corpus,
            masks=self.masks[rows],
            outcomes=self.outcomes[rows],
            answers=tuple(self.answers[row] for row in rows),
            choices=tuple(self.choices[row] for row in rows) if self.choices else (),
        )


@checked
def load_predictions(
    journals: Path | str | Sequence[Path | str], corpus: Corpus, *, partial: bool = False
) -> Predictions:
    """Loads a run's predictions for a corpus, from one journal or from those of its shards.

    Args:
        journals: The journal, or one per shard; if a turn occurs in several, the last one counts.
            If a journal does not exist, its shards are loaded.
        corpus: The corpus of the run.
        partial: Whether to accept a run that does not cover the corpus. The result is
            then aligned to the dialogues that are covered completely.

    Returns:
        The predictions, aligned to ``corpus`` or, if partial, to the covered dialogues.

    Raises:
        NoRunError: If no dialogue is covered completely.
        JournalError: If the journals belong to different runs, answer another version of
            the corpus, or cover only a part of it without ``partial`` (the message says n of
            N).
    """
    named = [journals] if isinstance(journals, Path | str) else journals
    files = [file for path in named for file in journal_files(Path(path))]
    records: list[Record] = []
    stored: list[Prediction] = []
    for path in files:
        record, answers = read_journal(path)
        records.append(record)
        stored += _matching(record, answers, corpus, path)
    run = aligned(joined_record(files, records, corpus), stored, corpus)
    run = replace(run, files=tuple(files))
    if not partial and len(run.corpus) < len(corpus):
        answered = len(asked_turns(corpus) & {(p.dialogue, p.turn) for p in stored})
        raise JournalError(
            f"{_names(files)}: answers {answered} of {run.of_turns} user turns of {corpus.name}. "
            "Resume the run with `cradle infer`, or take the complete dialogues only: "
            "`cradle score --partial`, `cradle compare --common`."
        )
    if not len(run.corpus):
        raise NoRunError(
            f"{_names(files)}: covers no dialogue of {corpus.name} completely. "
            "Resume the run with `cradle infer`."
        )
    return run


def require_finished(run: Predictions) -> None:
    """Checks that all turns of a run's dialogues are answered.

    Raises:
        JournalError: If some are not; the message names the journals of the run.
    """
    if not run.is_finished:
        raise JournalError(
            f"{_names(run.files)}: this run is not finished: {len(run.corpus):,} of its dialogues "
            "are complete. Finish it with `cradle infer` first."
        )


def asked_turns(corpus: Corpus) -> set[tuple[str, int]]:
    """Gives the dialogue's id and the ``turn_id`` of each user turn."""
    return {(dialogue.id, turn.turn_id) for dialogue in corpus for turn in dialogue.user_turns}


def aligned(record: Record, stored: Iterable[Prediction], corpus: Corpus) -> Predictions:
    """Aligns answers to the dialogues that they cover completely; the last answer counts.

    Of a partial run, dialogues without user turns are kept only if it is a finished sample that
    contains them: they have no answer that could be missing.
    """
    found = {(p.dialogue, p.turn): p for p in stored}
    covered = [
        position
        for position, dialogue in enumerate(corpus)
        if all((dialogue.id, turn.turn_id) in found for turn in dialogue.user_turns)
    ]
    part = corpus
    if len(covered) < len(corpus):
        dialogues = corpus.dialogues
        kept = {dialogues[place].id for place in covered if dialogues[place].user_turns}
        sample = set(record.dialogues or ())
        if sample <= {dialogues[place].id for place in covered}:
            kept |= sample
        chosen = [place for place in covered if dialogues[place].id in kept]
        part = corpus.subset(chosen, f"{corpus.name}[{len(chosen)}]")
    rows = [found[d.id, turn.turn_id] for d in part for turn in d.user_turns]
    return Predictions(
        record=record,
        corpus=part,
        masks=np.array([p.mask for p in rows], dtype=np.uint16),
        outcomes=np.array([_CODES[p.outcome] for p in rows], dtype=np.uint8),
        answers=tuple(p.answer for p in rows),
        of_turns=len(corpus.gold),
        choices=tuple(p.choices for p in rows),
    )


def _matching(
    record: Record, stored: list[Prediction], corpus: Corpus, path: Path
) -> list[Prediction]:
    """Keeps the predictions whose question occurs in this corpus unchanged."""
    template = template_of(record)
    if template is None:
        if record.corpus_fingerprint == corpus.fingerprint:
            return stored
        raise JournalError(
            f"{paths.shown(path)}: was made for corpus {record.corpus_fingerprint}, "
            f"{corpus.name} is {corpus.fingerprint}, and its prompt {record.prompt!r} "
            f"({record.prompt_hash}) is missing here, so no answer can be matched. Run it again."
        )
    by_dialogue: dict[str, list[Prediction]] = {}
    for prediction in stored:
        by_dialogue.setdefault(prediction.dialogue, []).append(prediction)
    kept: list[Prediction] = []
    for dialogue in corpus:
        mine = by_dialogue.get(dialogue.id, [])
        kept += session_of(record, dialogue, template, mine).taken
    if stored and not kept:
        raise JournalError(
            f"{paths.shown(path)}: none of its answers belongs to a question that {corpus.name} "
            f"({corpus.fingerprint}) asks; it was made for {record.corpus} "
            f"({record.corpus_fingerprint}). Name the corpus of the run."
        )
    return kept


def session_of(
    record: Record, dialogue: Dialogue, template: Template, stored: Iterable[Prediction]
) -> Session:
    """Asks about a dialogue as a run did, and takes its stored predictions."""
    return Session(
        dialogue, template, record.history, stored, neutralise=record.neutralise is not False
    )


def template_of(record: Record) -> Template | None:
    """Finds the template that a run used; ``None`` if it is missing here or has changed."""
    try:
        template = load_template(record.prompt)
    except RegistryError:
        return None
    return template if template.hash == record.prompt_hash else None


def _names(files: Sequence[Path]) -> str:
    return ", ".join(paths.shown(path) for path in files)
