"""Excerpts of dialogues for a page: closed, announced, escaped and marked.

Whatever a turn says is data: it is escaped, so that it can't become markup. An excerpt
stays closed until a reader opens it, and a content warning comes first. Only the
surrogate, which this project wrote itself, is shown; the text of any other corpus never
reaches a page, and its labels stand alone.

CSS classes: ``cradle-warning``, ``cradle-example`` (a ``details`` element),
``cradle-turns``, ``cradle-tag`` with ``correct``, ``false-positive``, ``false-negative``,
``temporal``, ``stage`` or ``type``.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.detection.journals.predictions import Predictions
from cradle_lib.detection.parsing import OUTCOMES, Outcome
from cradle_lib.display.explorer.links import link_to_turns
from cradle_lib.display.notice import Notice
from cradle_lib.labels import NONE, labels_of
from cradle_lib.scoring.errors.cases import pick_cases
from cradle_lib.scoring.errors.confusion import CELLS, NONE_CELL, pair
from cradle_lib.scoring.errors.taxonomy import ErrorKind, kind_of

WARNING: Final = (
    "The excerpts below talk about suicide, self-harm, abuse and violence, without detail. "
    "They stay closed until you open them. Help lines stand at the foot of every page and under"
)
# As seen from the pages of sections.
HELP_PAGE: Final = "../help.html"
SURROGATE: Final = "Surrogate, written by this project: no real person speaks."
_TOLD: Final = {
    None: "correct",
    ErrorKind.FALSE_POSITIVE: "not in gold",
    ErrorKind.FALSE_NEGATIVE: "missed",
}
# Systems that the explorer is opened with.
_LANES: Final = 3
HIDDEN: Final = "Text not shown: this corpus is not the surrogate."
TITLES: Final = {
    ErrorKind.FALSE_POSITIVE: "A tag where there is no gold label",
    ErrorKind.FALSE_NEGATIVE: "A gold label that was missed",
    ErrorKind.TEMPORAL: "Ongoing and past taken for each other",
    ErrorKind.STAGE: "Alert and confirm taken for each other",
    ErrorKind.TYPE: "One crisis type taken for another",
}


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A few turns of one dialogue: its position in the corpus, the first and last ``turn_id``.

    The title says in neutral words what they show; it stands outside the closed part. An excerpt
    may be about one turn, and about systems by their names.
    """

    title: str
    dialogue: int
    first: int
    last: int
    turn: int | None = None
    systems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Examples:
    """Excerpts with gold labels and the tags of one or more models.

    Attributes:
        corpus: Where the turns come from.
        excerpts: In the order shown.
        runs: Predictions for this corpus or a part of it; a dialogue that is in none of a
            run's is shown as not asked.
    """

    corpus: Corpus
    excerpts: tuple[Excerpt, ...]
    runs: tuple[Predictions, ...]

    def _repr_html_(self) -> str:
        origin = SURROGATE if self.corpus.synthetic else HIDDEN
        blocks = "".join(self._excerpt(excerpt, origin) for excerpt in self.excerpts)
        return (
            '<div class="cradle-warning" role="note"><p><strong>Content warning.</strong> '
            f'{html.escape(WARNING)} <a href="{HELP_PAGE}">Where to find help</a>.</p>'
            f"<p>{html.escape(origin)}</p></div>{blocks}"
        )

    def __repr__(self) -> str:
        """Says how many there are; never any text of a dialogue."""
        return f"{len(self.excerpts)} closed excerpts of {self.corpus.name}"

    def _excerpt(self, excerpt: Excerpt, origin: str) -> str:
        dialogue = self.corpus.dialogues[excerpt.dialogue]
        turns = "".join(
            self._turn(dialogue, turn)
            for turn in dialogue.turns[excerpt.first : excerpt.last + 1]
            if not turn.continues
        )
        place = f"dialogue {dialogue.id}, turns {excerpt.first + 1} to {excerpt.last + 1}"
        about = "" if excerpt.turn is None else f", turn {excerpt.turn + 1},"
        link = link_to_turns(excerpt.systems, dialogue=dialogue.id, turn=excerpt.turn)
        return (
            f'<details class="cradle-example"><summary>{html.escape(excerpt.title)} '
            f"({html.escape(place)})</summary><p><small>{html.escape(origin)}</small></p>"
            f'<ol class="cradle-turns" start="{excerpt.first + 1}">{turns}</ol></details>'
            f'<p class="cradle-case"><a href="{html.escape(link)}">Dialogue '
            f"{html.escape(dialogue.id)}{about} in the explorer</a></p>"
        )

    def _turn(self, dialogue: Dialogue, turn: Turn) -> str:
        said = html.escape(dialogue.utterance(turn) if self.corpus.synthetic else HIDDEN)
        lines = f"<p><strong>{turn.speaker}:</strong> {said.replace(chr(10), '<br>')}</p>"
        tags = [_tags(run, dialogue, turn) for run in self.runs] if turn.asked else []
        quiet = {f"{html.escape(run.record.name)}: {_plain(0)}" for run in self.runs}
        if turn.asked and not turn.mask and set(tags) <= quiet:
            # Most turns carry nothing; one line is enough to say so.
            lines += f"<p>Gold and tags: {_plain(0)}</p>"
        elif turn.asked or turn.mask:
            gold = f"Gold: {_plain(turn.mask)}{_given_before(dialogue, turn)}"
            lines += "".join(f"<p>{tag}</p>" for tag in (gold, *tags))
        return f'<li value="{turn.turn_id + 1}">{lines}</li>'


def marked(gold: int, predicted: int) -> Iterator[tuple[str, str, str]]:
    """Says of each label on a turn, which has a gold mask and a predicted one, what became of it.

    Yields:
        The tag (the gold label where there is no tag), how it is marked (``correct``, or an
        :class:`.ErrorKind`) and what the mark says. Labels are paired as in the confusion matrix.
    """
    for row, column in pair(gold, predicted):
        if row == column == NONE_CELL:
            continue
        kind = kind_of(row, column)
        told = _TOLD.get(kind, f"in place of {CELLS[row]}")
        yield CELLS[row if column == NONE_CELL else column], kind or "correct", told


def error_examples(
    runs: Sequence[Predictions],
    *,
    per_kind: int = 1,
    most: int | None = None,
    seed: int = 0,
    before: int = 4,
) -> Examples | Notice:
    """Shows error cases with the turns that come before them (Table 6 of the paper).

    Args:
        runs: Predictions of one or more models over the same dialogues.
        per_kind: Cases of each kind of error, picked by :func:`.pick_cases`.
        most: No more cases than this.
        seed: Seed of the draw among cases in which equally many models err.
        before: How many rows of context come first, if there are so many.

    Returns:
        One excerpt for each case, up to the turn and the rows that continue it; a notice if
        there is no case.

    Raises:
        ScoringError: If there is no run, or they are not over the same dialogues.
    """
    tags = {run.record.name: run.masks for run in runs}
    corpus = runs[0].corpus if runs else Corpus("none", ())
    cases = pick_cases(corpus, tags, per_kind=per_kind, seed=seed)[:most]
    if not cases:
        return Notice("No run errs on any user turn: there is no case to show.")
    places = {dialogue.id: position for position, dialogue in enumerate(corpus)}
    excerpts = []
    for case in cases:
        turns, last = case.dialogue.turns, case.turn.turn_id
        while last + 1 < len(turns) and turns[last + 1].continues:
            last += 1
        first = max(0, case.turn.turn_id - before)
        place, turn = places[case.dialogue.id], case.turn.turn_id
        about = case.erring[:_LANES]
        excerpts.append(Excerpt(TITLES[case.kind], place, first, last, turn, about))
    return Examples(corpus, tuple(excerpts), tuple(runs))


def first_turns(corpus: Corpus, runs: Sequence[Predictions], *, dialogues: int) -> Examples:
    """Picks the dialogues with the most gold labels, up to the turn of the last label.

    Args:
        corpus: The corpus, or the part of it that the runs cover.
        runs: Predictions to show.
        dialogues: How many dialogues to show at most.

    Returns:
        The examples; the same for the same corpus.
    """
    order = sorted(range(len(corpus)), key=lambda i: -corpus.dialogues[i].mask.bit_count())
    excerpts = []
    for position in order[:dialogues]:
        turns = corpus.dialogues[position].turns
        last = max((turn.turn_id for turn in turns if turn.mask), default=len(turns) - 1)
        names = tuple(run.record.name for run in runs[:_LANES])
        excerpts.append(Excerpt("A dialogue, turn by turn", position, 0, last, None, names))
    return Examples(corpus, tuple(excerpts), tuple(runs))


def _given_before(dialogue: Dialogue, turn: Turn) -> str:
    """Says which labels the dialogue has had: one is given once, however often it is said."""
    first: dict[str, int] = {}
    for earlier in dialogue.turns[: turn.turn_id]:
        for label in labels_of(earlier.mask & ~turn.mask):
            first.setdefault(label, earlier.turn_id + 1)
    given = ", ".join(f"{label} on turn {number}" for label, number in first.items())
    return f" (given before: {given})" if given else ""


def _tags(run: Predictions, dialogue: Dialogue, turn: Turn) -> str:
    name = html.escape(run.record.name)
    row = _row(run, dialogue, turn)
    if row is None:
        return f"{name}: not asked"
    outcome = OUTCOMES[int(run.outcomes[row])]
    if outcome is not Outcome.OK:
        # The raw answer stays in the journal: nobody has read what a model made up.
        return f"{name}: no tag, its answer was {outcome}"
    marks = [
        f'<span class="cradle-tag {mark.replace("_", "-")}"><code>{label}</code> {told}</span>'
        for label, mark, told in marked(turn.mask, int(run.masks[row]))
    ]
    return f"{name}: {', '.join(marks) or _plain(0)}"


def _row(run: Predictions, dialogue: Dialogue, turn: Turn) -> int | None:
    for position, covered in enumerate(run.corpus):
        if covered.id == dialogue.id:
            start = int(np.searchsorted(run.corpus.dialogue_of, position))
            return start + [t.turn_id for t in covered.user_turns].index(turn.turn_id)
    return None


def _plain(mask: int) -> str:
    return ", ".join(f"<code>{label}</code>" for label in labels_of(mask) or (NONE,))
