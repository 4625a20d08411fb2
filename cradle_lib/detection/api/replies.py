"""How what a service sends becomes an answer, whatever it sends.

A reply is read as plain JSON: any field may be missing or of another kind than its
documentation says, and none of that may end a run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from cradle_lib.detection.parsing import Outcome, is_cut
from cradle_lib.detection.session import Answer

LONGEST_CONTEXT: Final = 10_000_000


def look(value: object, *path: str | int) -> Any:
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
    found = look(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def believed(text: str, **counts: int | None) -> dict[str, int | None]:
    """Gives the counts of a reply's tokens if they can be true.

    Args:
        text: What the model wrote.
        **counts: ``tokens_in``, all tokens of the prompt; ``tokens_cached`` and
            ``tokens_written``, parts of them; ``tokens_out``.

    Returns:
        The counts; all of them ``None``, as if nothing had been told, if one is negative or
        greater than any model's context, if the parts are more than the prompt, or if a prompt or
        a text has no tokens.
    """
    told = [count for count in counts.values() if count is not None]
    into, out = counts["tokens_in"], counts["tokens_out"]
    parts = (counts["tokens_cached"] or 0) + (counts["tokens_written"] or 0)
    odd = (
        any(not 0 <= count <= LONGEST_CONTEXT for count in told)
        or (into is not None and into < max(parts, 1))
        or (out == 0 and text != "")
    )
    return dict.fromkeys(counts) if odd else counts


def text_of(content: object) -> str:
    """Reads a message's text, which may be one text or a list of blocks."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    texts = (look(block, "text") for block in content if look(block, "type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


def one_line(text: object) -> str:
    """Puts a service's words on one line."""
    return " ".join(str(text).split())


def unreadable(reply: object, expected: str, part: str) -> Answer:
    """Makes the answer for a reply that is not what was asked for, although its status is 200.

    Args:
        reply: What came.
        expected: What a good reply would have been.
        part: What a good reply holds.

    Returns:
        A failed answer; an error that the reply holds is quoted.
    """
    if not isinstance(reply, dict):
        return Answer("", Outcome.FAILED, f"the answer is not JSON of {expected}")
    error = look(reply, "error", "message") or look(reply, "error")
    quoted = f": {one_line(error)}" if error else ""
    return Answer("", Outcome.FAILED, f"the answer holds no {part}{quoted}")


def finished(text: str, *, cut: str | None, **counts: int | str | None) -> Answer:
    """Makes the answer of a call that ended in the ordinary way.

    Args:
        text: What the model wrote.
        cut: What ended it, if it did not end by itself, such as ``cut at 256 tokens``.
        **counts: Further fields of the answer.

    Returns:
        The answer; unparsed, with its reason, if it is empty or cut within the line
        that counts.
    """
    reason = None if text.strip() else "empty answer"
    if cut is not None and is_cut(text):
        reason = cut
    outcome = None if reason is None else Outcome.UNPARSED
    return replace(Answer(text, outcome, reason), **counts)  # type: ignore[arg-type]


def refused(answer: Answer, reason: object) -> Answer:
    """Marks an answer as refused and keeps what the provider said about it."""
    return replace(answer, outcome=Outcome.REFUSED, reason=one_line(reason))
