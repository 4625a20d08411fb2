"""Excerpts of dialogues for a page, with gold labels and predictions.

The text of turns is escaped, so that it can't become markup. Excerpts stay closed until a
reader opens them, below a content warning. Only text of the surrogate, which this project
wrote itself, is shown; the text of any other corpus never reaches a page, only its labels.

CSS classes: ``cradle-warning``, ``cradle-example`` (a ``details`` element),
``cradle-turns``, ``cradle-tag`` with ``correct``, ``false-positive``, ``false-negative``,
``temporal``, ``stage`` or ``type``.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from cradle_lib.arguments import checked, require_known
from cradle_lib.corpus.dialogue import Corpus, Dialogue, Turn
from cradle_lib.corpus.needs import Need
from cradle_lib.display.explorer.links import link_to_turns
from cradle_lib.display.notice import Notice, lacks
from cradle_lib.labels import NONE, labels_of

WARNING: Final = (
    "The excerpts below talk about suicide, self-harm, abuse and violence, without detail. "
    "They stay closed until you open them. Help lines are at the foot of every page and under"
)
# Relative to the executed pages.
HELP_PAGE: Final = "../help.html"
SURROGATE: Final = "Surrogate dialogue, written by this project; no real person said this."
HIDDEN: Final = "Text not shown: this corpus is not the surrogate."
# Maximum number of systems in a link to the explorer.
_SYSTEMS: Final = 3
#: Dialogue id and ``turn_id`` to the marks of labels, or to the outcome of an unusable answer.
Marks = Mapping[tuple[str, int], str | Sequence[tuple[str, str, str]]]


@dataclass(frozen=True)
class Examples:
    """Excerpts with gold labels and the predictions of one or more systems.

    Attributes:
        corpus: The corpus that the turns come from.
        excerpts: As :func:`.error_cases` gives them, in the order shown.
        marks: As :func:`.turn_marks` gives them. A turn without marks is shown as not asked.
    """

    corpus: Corpus
    excerpts: pd.DataFrame
    marks: Mapping[str, Marks]

    def _repr_html_(self) -> str:
        origin = SURROGATE if self.corpus.synthetic else HIDDEN
        blocks = "".join(self._excerpt(row, origin) for row in self.excerpts.itertuples())
        return (
            '<div class="cradle-warning" role="note"><p><strong>Content warning.</strong> '
            f'{html.escape(WARNING)} <a href="{HELP_PAGE}">Where to find help</a>.</p>'
            f"<p>{html.escape(origin)}</p></div>{blocks}"
        )

    def __repr__(self) -> str:
        """States the number of excerpts; contains no text of a dialogue."""
        return f"{len(self.excerpts)} closed excerpts of {self.corpus.name}"

    def _excerpt(self, excerpt: Any, origin: str) -> str:
        dialogue = self.corpus.by_id[excerpt.dialogue]
        first, last = excerpt.first, excerpt.last
        rows = dialogue.turns[first : last + 1]
        turns = "".join(self._turn(dialogue, turn) for turn in rows if not turn.continues)
        span = f"turns {first + 1} to {last + 1}" if last > first else f"turn {first + 1}"
        place = f"dialogue {dialogue.id}, {span}"
        turn = None if pd.isna(excerpt.turn) else int(excerpt.turn)
        about = "" if turn is None else f", turn {turn + 1},"
        link = link_to_turns(excerpt.systems[:_SYSTEMS], dialogue=dialogue.id, turn=turn)
        return (
            f'<details class="cradle-example"><summary>{html.escape(excerpt.title)} '
            f"({html.escape(place)})</summary><p><small>{html.escape(origin)}</small></p>"
            f'<ol class="cradle-turns" start="{first + 1}">{turns}</ol></details>'
            f'<p class="cradle-case"><a href="{html.escape(link)}">Dialogue '
            f"{html.escape(dialogue.id)}{about} in the explorer</a></p>"
        )

    def _turn(self, dialogue: Dialogue, turn: Turn) -> str:
        text = html.escape(dialogue.utterance(turn) if self.corpus.synthetic else HIDDEN)
        lines = f"<p><strong>{turn.speaker}:</strong> {text.replace(chr(10), '<br>')}</p>"
        found = {
            name: own.get((dialogue.id, turn.turn_id), "not asked")
            for name, own in self.marks.items()
        }
        if turn.asked and not turn.mask and not any(found.values()):
            # Most turns have no label; one line is enough to say so.
            lines += f"<p>Gold and predictions: {_codes(())}</p>"
        elif turn.asked or turn.mask:
            lines += f"<p>Gold: {_codes(labels_of(turn.mask))}{_given_before(dialogue, turn)}</p>"
            for name, own in found.items() if turn.asked else ():
                lines += f"<p>{html.escape(name)}: {_predicted(own)}</p>"
        return f'<li value="{turn.turn_id + 1}">{lines}</li>'


@checked
def show_examples(
    corpus: Corpus,
    excerpts: pd.DataFrame,
    marks: Mapping[str, Mapping[Any, Any]],
    *,
    empty: str = "There is no dialogue to show.",
    needs: Need | None = None,
) -> Examples | Notice:
    """Shows turns of dialogues with their gold labels and the predictions of systems.

    Args:
        corpus: The corpus that the turns come from.
        excerpts: The result of :func:`.error_cases`.
        marks: The result of :func:`.turn_marks`.
        empty: Sentence in place of the excerpts if there are none.
        needs: What the excerpts need of the page's corpus, as for :func:`.show`.

    Returns:
        One excerpt for each row, or a notice with the sentence.
    """
    if why := lacks(needs):
        return Notice(why)
    if excerpts.empty:
        return Notice(empty)
    for column in ("title", "dialogue", "first", "last", "turn", "systems"):
        require_known("column", column, [*excerpts])
    return Examples(corpus, excerpts, marks)


def _given_before(dialogue: Dialogue, turn: Turn) -> str:
    """Lists the labels given earlier in the dialogue: each label is given once per dialogue."""
    first: dict[str, int] = {}
    for earlier in dialogue.turns[: turn.turn_id]:
        for label in labels_of(earlier.mask & ~turn.mask):
            first.setdefault(label, earlier.turn_id + 1)
    given = ", ".join(f"{label} on turn {number}" for label, number in first.items())
    return f" (gold before: {given})" if given else ""


def _predicted(found: str | Sequence[tuple[str, str, str]]) -> str:
    """Writes what a system predicted on a turn.

    The raw answer stays in the journal, because nobody has reviewed it.
    """
    if found == "not asked":
        return "not asked"
    if isinstance(found, str):
        return f"no labels, its answer was {found}"
    marked = [
        f'<span class="cradle-tag {mark.replace("_", "-")}"><code>{label}</code> {note}</span>'
        for label, mark, note in found
    ]
    return ", ".join(marked) or _codes(())


def _codes(labels: Sequence[str]) -> str:
    return ", ".join(f"<code>{label}</code>" for label in labels or (NONE,))
