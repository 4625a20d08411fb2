"""The Messages API with Anthropic's SDK."""

from __future__ import annotations

from typing import Any, Final

from cradle_engines.api.blocks import is_block
from cradle_engines.api.client import Remote
from cradle_engines.api.replies import completed_answer, lookup, text_of, tokens, unreadable
from cradle_lib.detection.protocol.session import Answer, Prompt

# This version accepts a temperature, which the paper sets to 0. With the SDK's newer default the
# service answers 400 to it.
API_VERSION: Final = "2023-06-01"
_ENDINGS: Final = {
    "end_turn": None,
    "stop_sequence": None,
    "refusal": None,
    "model_context_window_exceeded": "cut at the end of the model's context",
}


class AnthropicMessages(Remote):
    """Asks any server with the Messages API."""

    uses = frozenset({"max_new_tokens", "temperature", "seed", "extra"})
    package = "anthropic"
    client = "AsyncAnthropic"
    endpoint = "https://api.anthropic.com"
    path = "/v1/messages"

    def headers(self) -> dict[str, Any]:
        """Sets the version of the API."""
        return {"anthropic-version": API_VERSION}

    def settings(self) -> dict[str, Any]:
        """Gives the entry's settings as parameters of a call."""
        return {"temperature": self.decoding.temperature, "seed": self.decoding.seed}

    def messages(self, prompt: Prompt) -> list[dict[str, Any]]:
        """Divides the text into blocks for the prompt cache of Anthropic's own endpoint.

        The static part and the history end with a cache mark. Each earlier question's history also
        ends a block, because the service looks up cached prefixes only at the ends of blocks. Other
        servers cache any prefix, and some join blocks with a line break, which would change the
        text: they get no blocks.
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
        # Amazon's gateway names its filter as the ending.
        if declined := is_block(ended):
            ended = "refusal"
        if any(lookup(block, "type") == "tool_use" for block in content):
            # Some servers say "end_turn" after a call of a tool, too.
            ended = "tool_use"
        served = lookup(reply, "model")
        return completed_answer(
            text,
            "stop_reason",
            ended,
            _ENDINGS | {"max_tokens": f"cut at {self.decoding.max_new_tokens} tokens"},
            declined=explained if declined else None,
            served=served if isinstance(served, str) else None,
            tokens_in=None if fresh is None else fresh + (cached or 0) + (written or 0),
            tokens_cached=cached,
            tokens_written=written,
            tokens_out=tokens(reply, "usage", "output_tokens"),
        )
