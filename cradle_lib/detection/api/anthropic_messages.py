"""The Messages API with Anthropic's SDK."""

from __future__ import annotations

from typing import Any, Final

from cradle_lib.detection.api.client import Remote
from cradle_lib.detection.api.replies import finished, lookup, text_of, tokens, unreadable
from cradle_lib.detection.session import Answer, Prompt

# The version that still knows a temperature, which the paper sets to 0; the SDK's own
# default is newer and answers 400 to it.
API_VERSION: Final = "2023-06-01"
_ENDINGS: Final = {
    "end_turn": None,
    "stop_sequence": None,
    "refusal": None,
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
        """Says what the registry asks for."""
        return {
            "max_tokens": self.decoding.max_new_tokens,
            "temperature": self.decoding.temperature,
            "seed": self.decoding.seed,
        }

    def messages(self, prompt: Prompt) -> list[dict[str, Any]]:
        """Divides the text for Anthropic's own endpoint, which caches up to marked blocks.

        The static part and the history end with a mark. Each earlier question's history ends a
        block too, because the service finds what it cached at the ends of blocks only. Other
        servers cache whatever beginnings they have seen, and some of them join blocks with a line
        break, which would change the text: they get no blocks.
        """
        [message] = prompt.messages
        if self.model.base_url is not None:
            return [message]
        content: list[dict[str, Any]] = [{"type": "text", "text": part} for part in prompt.blocks]
        for position in {0, len(content) - 2} if len(content) > 1 else ():
            content[position]["cache_control"] = {"type": "ephemeral"}
        return [{**message, "content": content}]

    def read(self, reply: object) -> Answer:
        """Reads a message; prompt tokens are counted with those read from or written to a cache."""
        content = lookup(reply, "content")
        if not isinstance(content, list):
            return unreadable(reply, "a message", "content")
        fresh = tokens(reply, "usage", "input_tokens")
        cached = tokens(reply, "usage", "cache_read_input_tokens")
        written = tokens(reply, "usage", "cache_creation_input_tokens")
        text, ended = text_of(content), lookup(reply, "stop_reason")
        explained = lookup(reply, "stop_details", "explanation") or "declined"
        served = lookup(reply, "model")
        return finished(
            text,
            "stop_reason",
            ended,
            _ENDINGS | {"max_tokens": f"cut at {self.decoding.max_new_tokens} tokens"},
            declined=explained if ended == "refusal" else None,
            served=served if isinstance(served, str) else None,
            tokens_in=None if fresh is None else fresh + (cached or 0) + (written or 0),
            tokens_cached=cached,
            tokens_written=written,
            tokens_out=tokens(reply, "usage", "output_tokens"),
        )
