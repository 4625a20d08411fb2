"""Converts replies of services, as plain JSON, to answers.

Any field may be missing or have another type than documented; this never ends a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from cradle_lib.detection.protocol.parsing import Outcome, is_cut
from cradle_lib.detection.protocol.session import Answer

LONGEST_CONTEXT: Final = 10_000_000
_REQUEST: Final = frozenset({"input", "prompt", "messages", "body", "request", "ctx"})


def lookup(value: object, *path: str | int) -> Any:
    """Looks up a path of keys and indices in JSON; ``None`` if it does not exist."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def fields_of(value: object, depth: int = 10) -> Iterator[tuple[str, object]]:
    """Yields the fields of JSON at any depth up to 10: the name in snake case, and the value.

    Fields in which servers repeat the request are left out, because they contain the prompt.
    """
    if depth and isinstance(value, list):
        for each in value:
            yield from fields_of(each, depth - 1)
    elif depth and isinstance(value, dict):
        for key, each in value.items():
            if (name := snake_case(key)) not in _REQUEST:
                yield name, each
                yield from fields_of(each, depth - 1)


def snake_case(name: object) -> str:
    """Writes a name in snake case, without the ending: "RateLimitError" is "rate_limit"."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])|[ .-]", "_", str(name)).lower()
    return re.sub(r"_(error|exception)$", "", snake)


def tokens(value: object, *path: str) -> int | None:
    """Reads a number of tokens; ``None`` if there is none."""
    found = lookup(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def text_of(content: object) -> str:
    """Reads a message's text, which may be one text or a list of blocks."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    texts = (lookup(block, "text") for block in content if lookup(block, "type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


def one_line(text: object) -> str:
    """Puts a message of a service on one line."""
    return " ".join(str(text).split())


def unreadable(reply: object, expected: str, part: str) -> Answer:
    """Makes the answer for a reply of status 200 that is not ``expected``, or lacks a ``part``."""
    if not isinstance(reply, dict):
        return Answer("", Outcome.FAILED, f"the answer is not JSON of {expected}")
    return Answer("", Outcome.FAILED, f"the answer contains no {part}")


def completed_answer(
    text: str,
    field: str,
    ended: object,
    endings: Mapping[str, str | None],
    *,
    declined: object = None,
    served: str | None = None,
    **counts: int | None,
) -> Answer:
    """Makes the answer of a successful call.

    An answer with an unknown ending is ``failed``. A missing ending is accepted and recorded if
    there is a text, because some servers never report one. An answer that was cut is unparsed, if
    its labels might be other ones when it is complete.

    Args:
        text: The model's raw text. If it is empty, the answer is unparsed.
        field: Name of the field with the ending.
        ended: The ending that the service reports, such as ``stop``.
        endings: The known endings. Those of cut answers have a reason, such as ``cut at 256
            tokens``; the others ``None``.
        declined: The provider's explanation of a refusal, if the answer is one.
        served: As in :class:`.Answer`.
        **counts: ``tokens_in``, all tokens of the prompt; ``tokens_cached`` and
            ``tokens_written``, parts of them; ``tokens_out``. All are dropped if they are not
            plausible: if one is negative or greater than any model's context, if the parts exceed
            the prompt, or if a prompt or a text has no tokens.
    """
    reported = {name: count for name, count in counts.items() if count is not None}
    parts = reported.get("tokens_cached", 0) + reported.get("tokens_written", 0)
    implausible = (
        any(not 0 <= count <= LONGEST_CONTEXT for count in reported.values())
        or ("tokens_in" in reported and reported["tokens_in"] < max(parts, 1))
        or (reported.get("tokens_out") == 0 and text != "")
    )
    outcome, reason = None, None
    known = isinstance(ended, str) and ended in endings
    if ended is None and not (text.strip() or declined):
        outcome, reason = Outcome.FAILED, f"the reply has neither a text nor a {field}"
    elif ended is not None and not known:
        shown = repr(ended) if isinstance(ended, str | int | float) else f"a {type(ended).__name__}"
        text, outcome = "", Outcome.FAILED
        reason = f"the answer ended with {field} {shown}"
    elif declined:
        outcome, reason = Outcome.REFUSED, one_line(declined)
    elif known and (cut := endings[str(ended)]) and is_cut(text):
        outcome, reason = Outcome.UNPARSED, cut
    elif not text.strip():
        outcome, reason = Outcome.UNPARSED, "empty answer"
    ending = "missing" if ended is None else "cut" if known and endings[str(ended)] else None
    answer = Answer(text, outcome, reason, served=served, ending=ending)
    return answer if implausible else replace(answer, **reported)  # type: ignore[arg-type]
