"""Links from a number on a page to the turns that it counts, in the explorer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import pandas as pd

from cradle_lib.arguments import checked, require_known
from cradle_lib.display.banner import EXPLORER
from cradle_lib.display.cells import Record, missing
from cradle_lib.labels import UNUSABLE

#: Terms of a filter; they mean the columns of the same name in the library's frames.
TERMS: Final = (
    *("gold", "predicted", "category", "pairing", "outcome", "gold_order", "predicted_order"),
    *("scenario", "timing", "among"),
)
# Columns that name a turn, with their types.
_PLACE: Final[Mapping[str, type[Any]]] = {"dialogue": str, "turn": int}


@checked
def link_to_turns(
    systems: Sequence[str] = (),
    *,
    dialogue: str | None = None,
    turn: int | None = None,
    people: bool = False,
    **terms: str | Sequence[str],
) -> str:
    """Gives the address of turns in the explorer.

    Args:
        systems: Names or ids of the systems shown; the filter is about the first one.
        dialogue: Id of the dialogue to open, if any.
        turn: ``turn_id`` of the turn to open in it.
        people: Whether the explorer shows annotators instead of systems.
        **terms: The filter, by :data:`TERMS`; several values of one are alternatives. ``gold`` and
            ``predicted`` are a label, ``none``, ``any`` label, a stage or a crisis type;
            ``category`` is a category or kind of error, ``any`` (error) or ``right``; ``outcome``
            is an outcome or ``unusable`` for all but ``ok``; ``pairing`` is as in
            :func:`.confusion_frame`, ``gold_order`` and ``predicted_order`` are orders of
            :func:`.stage_orders`; ``among`` are user turns, each as ``DIALOGUE.TURN_ID``.

    Returns:
        An address relative to the executed pages.
    """
    for term in terms:
        require_known("term", term, TERMS)
    # The default is left out.
    filters = [(k, v) for k, v in terms.items() if (k, v) != ("pairing", "one-to-one")]
    parts = ["v=annotators"] if people else []
    parts += [f"d={_quoted(dialogue)}"] if dialogue is not None else []
    parts += [f"t={turn + 1}"] if turn is not None else []
    parts += ["m=" + ",".join(map(_quoted, systems))] if systems else []
    parts += ["f=" + ";".join(f"{k}:{_quoted(v)}" for k, v in filters)] if filters else []
    return f"{EXPLORER}#{'&'.join(parts)}"


@checked
def with_links(
    frame: pd.DataFrame, *, people: bool = False, **terms: str | Sequence[str]
) -> pd.DataFrame:
    """Adds the column ``link``: the address in the explorer of the turns of each row.

    Args:
        frame: With a column ``system`` and any of ``gold``, ``predicted``, ``category``,
            ``pairing``, ``outcome``, ``gold_order``, ``predicted_order``, ``scenario``, ``timing``,
            ``dialogue`` and ``turn``, as the frames of the library have them.
        people: As in :func:`link_to_turns`.
        **terms: Terms for all rows, as in :func:`link_to_turns`; they override columns.

    Returns:
        A copy of the frame with the column; it is missing where a row has no system.
    """

    def link(record: Record) -> str | None:
        known = {name: value for name, value in record.items() if not missing(value)}
        if "system" not in known:
            return None
        own = {term: str(known[term]) for term in TERMS if known.get(term, UNUSABLE) != UNUSABLE}
        place = {name: kind(known[name]) for name, kind in _PLACE.items() if name in known}
        return link_to_turns([str(known["system"])], people=people, **{**place, **own, **terms})

    links: list[Any] = [link(record) for record in frame.to_dict("records")]
    return frame.assign(link=links)


def _quoted(text: str | Sequence[str]) -> str:
    """Quotes a value, or several with commas between them."""
    if isinstance(text, str):
        return quote(text, safe="")
    return ",".join(quote(each, safe="") for each in text)
