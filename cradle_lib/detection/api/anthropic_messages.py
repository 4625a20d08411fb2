"""The Messages API with Anthropic's SDK."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from cradle_lib.detection.api.faults import Fault, fault_of_status
from cradle_lib.detection.api.remote import Remote
from cradle_lib.detection.api.replies import finished, look, text_of, tokens, unreadable
from cradle_lib.detection.session import Answer, Prompt

# The version that still knows a temperature, which the paper sets to 0; the SDK's own
# default is newer and answers 400 to it.
API_VERSION: Final = "2023-06-01"
# What an error within a batch would have been as a call of its own.
_STATUS: Final = {"invalid_request_error": 400, "not_found_error": 404, "permission_error": 403}
_CUT: Final = {
    "max_tokens": "cut at {} tokens",
    "model_context_window_exceeded": "cut at the end of the model's context",
}


class AnthropicMessages(Remote):
    """Asks any server that speaks the Messages API."""

    uses = frozenset({"max_new_tokens", "temperature", "seed", "extra"})
    package = "anthropic"
    client = "AsyncAnthropic"
    endpoint = "https://api.anthropic.com"
    path = "/v1/messages"

    def headers(self) -> dict[str, Any]:
        """Names the version of the interface."""
        return {"anthropic-version": API_VERSION}

    def settings(self) -> dict[str, Any]:
        """Says what the registry asks for.

        Anthropic's own endpoint caches up to marked blocks. Other servers cache whatever
        beginnings they have seen, and some of them join blocks with a line break, which
        would change the text: they get no blocks.
        """
        return {
            "max_tokens": self.decoding.max_new_tokens,
            "temperature": self.decoding.temperature,
            "seed": self.decoding.seed,
            "cache_control": {"type": "ephemeral"} if self.model.base_url is None else None,
        }

    def body(self, prompt: Prompt) -> dict[str, Any]:
        """Makes the body of a call, with the marks of the cache where they belong."""
        rest = dict(self._parameters.sent)
        mark = rest.pop("cache_control", None)
        messages: list[dict[str, Any]] = list(prompt.messages)
        if mark is not None:
            messages[-1] = {**messages[-1], "content": _marked(prompt.blocks, mark)}
        return {"model": self.model.weights, "messages": messages, **rest}

    async def submit(self, bodies: Mapping[str, dict[str, Any]], token: str) -> str:
        """Sends the questions as one batch."""
        requests = [{"custom_id": name, "params": body} for name, body in bodies.items()]
        return str((await self._client.messages.batches.create(requests=requests)).id)

    async def perhaps(self, token: str, questions: int, since: datetime) -> list[str]:
        """Lists the batches of as many questions: what they carry, only their results tell."""
        found = []
        async for batch in self._client.messages.batches.list(limit=100):
            if batch.created_at < since:
                break
            if sum(batch.request_counts.to_dict().values()) == questions:
                found.append(str(batch.id))
        return found

    async def ended(self, batch: str) -> bool:
        """Whether a batch is finished."""
        found = await self._client.messages.batches.retrieve(batch)
        return bool(found.processing_status == "ended")

    async def contents(self, batch: str) -> list[str]:
        """Reads the results, from the address that was agreed to and no other."""
        return [await self._get(f"{self.base}/v1/messages/batches/{batch}/results", str)]

    def result(self, line: object) -> object:
        """Takes the message, or the error as that of a call of its own."""
        found = look(line, "result")
        became = look(found, "type")
        if became == "succeeded":
            return look(found, "message")
        if became == "errored":
            error = look(found, "error")
            kind = look(error, "error", "type") or look(error, "type")
            return fault_of_status(_STATUS.get(str(kind), 500), {}, error)
        return Fault("failed", f"the batch left it {became}")

    def read(self, reply: object) -> Answer:
        """Reads a message; prompt tokens are counted with those read from or written to a cache."""
        content = look(reply, "content")
        if not isinstance(content, list):
            return unreadable(reply, "a message", "content")
        fresh = tokens(reply, "usage", "input_tokens")
        cached = tokens(reply, "usage", "cache_read_input_tokens")
        written = tokens(reply, "usage", "cache_creation_input_tokens")
        ended = str(look(reply, "stop_reason"))
        explained = look(reply, "stop_details", "explanation") or "declined"
        cut, served = _CUT.get(ended), look(reply, "model")
        return finished(
            text_of(content),
            cut=cut and cut.format(self.decoding.max_new_tokens),
            declined=explained if ended == "refusal" else None,
            served=served if isinstance(served, str) else None,
            tokens_in=None if fresh is None else fresh + (cached or 0) + (written or 0),
            tokens_cached=cached,
            tokens_written=written,
            tokens_out=tokens(reply, "usage", "output_tokens"),
        )


def _marked(blocks: list[str], mark: dict[str, str]) -> list[dict[str, Any]]:
    """Marks the end of the static part and the end of the history.

    Each earlier question's history ends a block too, because the service finds what it
    cached at the ends of blocks only.
    """
    content: list[dict[str, Any]] = [{"type": "text", "text": block} for block in blocks]
    for position in {0, len(content) - 2} if len(content) > 1 else ():
        content[position]["cache_control"] = mark
    return content
