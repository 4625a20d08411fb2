"""Recognises files in which a row has several turns or repeats those before it.

Questions for a model are often stored like this: each has the conversation so far, as a list of
messages or as one text. Of each row, only what is new is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pandas as pd

from cradle_lib.corpus.speakers import ROLES, key
from cradle_lib.corpus.transcripts import FIX_LINE, NAMED, lines_of, looks_like_name
from cradle_lib.errors import CorpusError

# The share of dialogues that are the beginning of another, or of texts with several turns, and of
# rows with the text of the row above, from which on a file repeats turns.
_DIALOGUES: Final = 0.25
_ROWS: Final = 0.5
# A shorter line is no evidence, because people repeat it.
_SHORTEST: Final = 8
_COPY: Final = "--no-cumulative keeps all rows, if they were said. Otherwise delete the copies."
_DECIDE: Final = (
    "--cumulative separates the turns and keeps what is new in each row; --no-cumulative keeps all "
    "rows as they are."
)


def refuse_repeats(rows: pd.DataFrame, known: set[str], *, cells_name_speakers: bool) -> None:
    """Refuses dialogues that begin other dialogues, and texts that contain those before them.

    Args:
        rows: The messages in order, with the columns ``row``, ``dialogue``, ``key`` and ``text``.
        known: Names of speakers, as :func:`.key` spells them.
        cells_name_speakers: Each text began with the name of its speaker. A line that begins with
            another name is another turn. Elsewhere it may be a quotation.
    """
    states = _states(rows)
    last = (rows["dialogue"] != rows["dialogue"].shift(-1)).tolist()
    inner = {state for state, ends in zip(states, last, strict=True) if not ends}
    ends = [state for state, end in zip(states, last, strict=True) if end]
    repeated = sum(state in inner for state in ends)
    if repeated > _DIALOGUES * len(ends):
        problem = f"{repeated:,} of {len(ends):,} dialogues are the beginning of another one"
        raise CorpusError(problem, hint=_DECIDE)
    found = [speakers_in(text, known) for text in rows["text"]]
    if cells_name_speakers:
        found = _speakers_within(rows, known)
    several = [len({ROLES.get(name, name) for name in names}) > 1 for names in found]
    if sum(several) > (0 if cells_name_speakers else _DIALOGUES * len(rows)):
        at = several.index(True)
        problem = f"{sum(several):,} of {len(rows):,} texts have lines of several speakers, here "
        problem += f"{', '.join(sorted(found[at])):.200}"
        hint = f"{FIX_LINE} {_DECIDE}"
        raise CorpusError(problem, row=rows["row"].iloc[at], hint=hint)
    pairs = [*_pairs(rows)]
    grown = sum(_repeats(one, other) or _repeats(other, one) for one, other in pairs)
    if grown > _ROWS * len(pairs):
        problem = f"{grown:,} of {len(pairs):,} rows repeat the text of the row before"
        raise CorpusError(problem, hint=_DECIDE)


def refuse_copies(rows: pd.DataFrame, numbers: pd.DataFrame) -> None:
    """Refuses messages that are copies of others, and dialogues that repeat all their messages.

    People send the same message twice. So a single one is a copy only with the same number.

    Args:
        rows: The messages in order, with the columns ``row``, ``dialogue``, ``key`` and ``text``.
        numbers: The columns with the number or id of the same messages, as texts; perhaps none.
    """
    numbers = numbers.set_axis(rows.index)
    parts = [rows[["dialogue", "key", "text"]], numbers]
    copied = pd.concat(parts, axis=1, ignore_index=True).duplicated()
    copied &= (rows["text"] != "") & (numbers != "").any(axis=1)
    if copied.any():
        problem = "the dialogue has this message twice, with the same number"
        raise CorpusError(problem, row=rows["row"][copied].iloc[0], hint=_COPY)
    for _, own in rows.groupby("dialogue", sort=False):
        said = [*zip(own["key"], own["text"], strict=True)]
        sizes = [size for size in range(3, len(said) // 2 + 1) if len(said) % size == 0]
        again = any(said == said[:size] * (len(said) // size) for size in sizes)
        again |= len(said) > 5 and said[::2] == said[1::2]
        numbered = (numbers.loc[own.index] != "").any(axis=None)
        if again and not numbered and own["text"].str.len().max() >= _SHORTEST:
            problem = "the dialogue has all its messages several times"
            raise CorpusError(problem, row=own["row"].iloc[0], hint=_COPY)


def longest_dialogues(rows: pd.DataFrame) -> pd.DataFrame:
    """Leaves out dialogues that are the beginning of another one.

    The labels of a dialogue that is left out belong to the last of its messages.
    """
    states = pd.Series(_states(rows), rows.index)
    last = rows["dialogue"] != rows["dialogue"].shift(-1)
    masks: dict[int, int] = {}
    for state, mask in zip(states[last], rows["mask"][last], strict=True):
        masks[state] = masks.get(state, 0) | mask
    complete = last & ~states.isin({*states[~last]}) & ~states.where(last).duplicated()
    rows = rows.assign(
        mask=[m | masks.get(s, 0) for s, m in zip(states, rows["mask"], strict=True)]
    )
    return rows[rows["dialogue"].isin(rows["dialogue"][complete])]


def starts_of_dialogues(texts: Sequence[str]) -> list[bool]:
    """Says for each text whether it does not begin with the one before, and starts a dialogue."""
    return [n == 0 or not text.startswith(texts[n - 1]) for n, text in enumerate(texts)]


def new_parts(
    rows: pd.DataFrame, split: Callable[[str, str], list[tuple[str, str]]]
) -> pd.DataFrame:
    """Keeps what each row adds to the one before in its dialogue.

    Args:
        rows: The messages in order.
        split: Splits a text, of which the speaker is known, into speakers and what they say.

    Returns:
        The messages; the labels of a row are those of its last message.

    Raises:
        CorpusError: If a text does not begin with the text before.
    """
    found: list[dict[Any, Any]] = []
    before = None
    for row in rows.to_dict("records"):
        text = row["text"]
        if before is not None and before["dialogue"] == row["dialogue"]:
            if not text.startswith(before["text"]):
                problem = "the text does not begin with the text of the row before"
                raise CorpusError(problem, row=row["row"], hint=_DECIDE)
            text = text[len(before["text"]) :].strip()
        parts = split(row["speaker"], text)
        masks = [0] * (len(parts) - 1) + [row["mask"]]
        found += [
            row | {"speaker": speaker, "text": said, "mask": mask}
            for (speaker, said), mask in zip(parts, masks, strict=True)
        ]
        before = row
    return pd.DataFrame(found)


def _states(rows: pd.DataFrame) -> list[int]:
    """Gives a number for each message, which is equal for equal beginnings of a dialogue."""
    found: list[int] = []
    before = None
    for dialogue, speaker, text in zip(rows["dialogue"], rows["key"], rows["text"], strict=True):
        found.append(hash((found[-1] if dialogue == before else 0, speaker, text)))
        before = dialogue
    return found


def _pairs(rows: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Yields each text with the next one in its dialogue."""
    same = rows["dialogue"] == rows["dialogue"].shift(-1)
    for one, other, together in zip(rows["text"], rows["text"].shift(-1), same, strict=True):
        if together and one and other:
            yield one, other


def speakers_in(text: str, known: set[str]) -> set[str]:
    """Lists the speakers whose names begin a line of a text, if one of them is known."""
    named = [match["name"] for match in map(NAMED.match, lines_of(text)) if match]
    speakers = known & {*map(key, named)}
    if speakers:
        speakers |= {key(name) for name in named if looks_like_name(name)}
    return speakers


def _speakers_within(rows: pd.DataFrame, known: set[str]) -> list[set[str]]:
    """Lists the speaker of each text and those whose names begin a further line of it.

    A name that is not known, such as that of a weekday, is a speaker's if it begins several such
    lines, or if the speaker of the text has a further line.
    """
    lines = [
        [key(name["name"]) for name in map(NAMED.match, lines_of(text)[1:]) if name]
        for text in rows["text"]
    ]
    number = Counter(name for names in lines for name in names)
    known = known | {name for name, n in number.items() if n > 1}
    return [
        {own, *(names if own in names else known & {*names})}
        for own, names in zip(rows["key"], lines, strict=True)
    ]


def _repeats(one: str, other: str) -> bool:
    """Whether the second text repeats the first one, or at least its last line."""
    last = one.rstrip().rpartition("\n")[2].strip()
    repeats = other.startswith(one) or (len(last) >= _SHORTEST and last in other)
    return repeats and len(other) > len(one)
