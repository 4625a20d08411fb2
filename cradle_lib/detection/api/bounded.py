"""Replies of a service within bounds: what has no end is given up, and is no answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from cradle_lib.errors import EngineError

if TYPE_CHECKING:
    from httpx2 import AsyncByteStream


class ReplyTooLargeError(EngineError):
    """A reply that is longer than any answer, or may be."""


#: Most bytes of the reply to one question: a hundred times the longest answer of today's models.
LARGEST_REPLY: Final = 1 << 25
#: Most bytes of the results of a batch of ten thousand questions.
LARGEST_BATCH: Final = 1 << 29
# Of a reply that comes packed although that was not asked for: it unpacks to a thousand times.
_LARGEST_PACKED: Final = 1 << 17
_PACKED: Final = frozenset({"gzip", "deflate"})


def bounded_stream(response: Any, *, batch: bool = False) -> AsyncByteStream:
    """Wraps the body of a reply.

    Args:
        response: The reply, with its head and before any of its body was read.
        batch: Whether it may hold the results of a batch.

    Returns:
        The body; to read it raises :class:`ReplyTooLargeError` where it becomes too long, or if it
        is packed in a way whose size can't be bounded.
    """
    from httpx2 import AsyncByteStream

    coding = response.headers.get("content-encoding", "identity").strip().lower()
    whole = response.stream

    class Bounded(AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            limit = LARGEST_BATCH if batch else LARGEST_REPLY
            if coding != "identity":
                if coding not in _PACKED:
                    raise ReplyTooLargeError(f"the reply is packed as {coding[:40]}")
                limit = _LARGEST_PACKED
            size = 0
            async for part in whole:
                size += len(part)
                if size > limit:
                    raise ReplyTooLargeError(f"the reply has more than {limit:,} bytes")
                yield part

        async def aclose(self) -> None:
            await whole.aclose()

    return Bounded()
