"""Reads replies of services: bounded in size, as plain JSON, and turned into answers.

Any field may be missing or have another type than its documentation says; none of that ends a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from cradle_lib.detection.parsing import Outcome, is_cut
from cradle_lib.detection.session import Answer

LONGEST_CONTEXT: Final = 10_000_000
#: Most bytes of the reply to one question: a hundred times the longest answer of today's models.
LARGEST_REPLY: Final = 1 << 25
# The same for a compressed reply, which may expand a thousand times. Calls don't ask for one.
_LARGEST_COMPRESSED: Final = 1 << 17


class ReplyTooLargeError(Exception):
    """A reply that is longer than any answer."""


async def read_bounded(response: Any) -> None:
    """Reads the body of a reply whose headers have come, and leaves it to be decoded.

    Raises:
        ReplyTooLargeError: Where it becomes too long.
    """
    from httpx2 import ByteStream

    plain = response.headers.get("content-encoding", "identity") == "identity"
    limit = LARGEST_REPLY if plain else _LARGEST_COMPRESSED
    size, parts = 0, []
    async for part in response.stream:
        size += len(part)
        if size > limit:
            raise ReplyTooLargeError(f"the reply has more than {limit:,} bytes")
        parts.append(part)
    await response.stream.aclose()
    response.stream = ByteStream(b"".join(parts))


def lookup(value: object, *path: str | int) -> Any:
    """Follows keys and positions into JSON; ``None`` where they lead nowhere."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


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
    """Puts a service's words on one line."""
    return " ".join(str(text).split())


def unfinished(text: str, field: str, ended: object, known: Iterable[str]) -> str | None:
    """Says why an answer is not known to be complete; ``None`` if it is.

    Only a known ending counts. A missing one is accepted if there is a text, because some servers
    never say how an answer ended.

    Args:
        text: What the model wrote, or what it says about a refusal.
        field: The field of the reply that has the ending.
        ended: What the service says about the end of the answer.
        known: The endings that are known: complete, cut, or refused.
    """
    if ended is None:
        return None if text.strip() else f"the reply has neither a text nor a {field}"
    if isinstance(ended, str) and ended in known:
        return None
    shown = repr(ended) if isinstance(ended, str | int | float) else f"a {type(ended).__name__}"
    return f"the answer ended with {field} {shown}"


def unreadable(reply: object, expected: str, part: str) -> Answer:
    """Makes the answer for a reply of status 200 that is not ``expected``, or lacks a ``part``."""
    if not isinstance(reply, dict):
        return Answer("", Outcome.FAILED, f"the answer is not JSON of {expected}")
    return Answer("", Outcome.FAILED, f"the answer holds no {part}")


def finished(
    text: str,
    *,
    cut: str | None,
    declined: object = None,
    failed: str | None = None,
    served: str | None = None,
    ending: str | None = None,
    **counts: int | None,
) -> Answer:
    """Makes the answer of a call that brought one.

    Args:
        text: What the model wrote. If it is empty or cut, the answer is unparsed.
        cut: What ended it, if it did not end by itself, such as ``cut at 256 tokens``.
        declined: What the provider says about a refusal, if it is one.
        failed: Why the answer can't count, from :func:`unfinished`. Its text is not kept.
        served: As in :class:`.Answer`.
        ending: As in :class:`.Answer`.
        **counts: ``tokens_in``, all tokens of the prompt; ``tokens_cached`` and
            ``tokens_written``, parts of them; ``tokens_out``. They are kept if they can be true:
            none is, as if nothing had been reported, if one is negative or greater than any model's
            context, if the parts are more than the prompt, or if a prompt or a text has no tokens.
    """
    reported = {name: count for name, count in counts.items() if count is not None}
    parts = reported.get("tokens_cached", 0) + reported.get("tokens_written", 0)
    odd = (
        any(not 0 <= count <= LONGEST_CONTEXT for count in reported.values())
        or ("tokens_in" in reported and reported["tokens_in"] < max(parts, 1))
        or (reported.get("tokens_out") == 0 and text != "")
    )
    outcome, reason = None, None
    if failed is not None:
        text, outcome, reason = "", Outcome.FAILED, failed
    elif declined:
        outcome, reason = Outcome.REFUSED, one_line(declined)
    elif cut is not None and is_cut(text):
        outcome, reason = Outcome.UNPARSED, cut
    elif not text.strip():
        outcome, reason = Outcome.UNPARSED, "empty answer"
    answer = Answer(text, outcome, reason, served=served, ending=ending)
    return answer if odd else replace(answer, **reported)  # type: ignore[arg-type]
