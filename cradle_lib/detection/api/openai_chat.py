"""Chat Completions with OpenAI's SDK: OpenAI, Gemini's compatible endpoint, local servers."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from cradle_lib.detection.api.client import Remote
from cradle_lib.detection.api.replies import (
    finished,
    lookup,
    text_of,
    tokens,
    unfinished,
    unreadable,
)
from cradle_lib.detection.session import Answer, Prompt

# "eos_token" is what Text Generation Inference said before its version 2.3, "eos" what Together
# says; Inspect reads the latter as "stop", too.
_COMPLETE: Final = ("stop", "eos", "eos_token")
_ENDINGS: Final = (*_COMPLETE, "length", "content_filter")


class OpenAIChat(Remote):
    """Asks any server that speaks Chat Completions."""

    uses = frozenset({"max_new_tokens", "temperature", "seed", "chat", "extra"})
    package = "openai"
    client = "AsyncOpenAI"
    endpoint = "https://api.openai.com/v1"
    path = "/chat/completions"
    listing = "/models"

    def headers(self) -> dict[str, Any]:
        """An account at OpenAI that the environment names is nobody else's business."""
        import openai

        account = ("OpenAI-Organization", "OpenAI-Project") if self.model.base_url else ()
        return dict.fromkeys(account, openai.Omit())

    def settings(self) -> dict[str, Any]:
        """Says what the registry asks for.

        OpenAI's newer models know the limit as ``max_completion_tokens`` only; other
        servers know ``max_tokens``. Temperature and seed are sent only if the registry
        sets them. At OpenAI's own endpoint, calls that share their beginning are sent
        where it is cached by a common ``prompt_cache_key``, filled in by :meth:`body`.
        """
        own = self.model.base_url is None
        return {
            "max_completion_tokens" if own else "max_tokens": self.decoding.max_new_tokens,
            "temperature": self.decoding.temperature,
            "seed": self.decoding.seed,
            "chat_template_kwargs": self.decoding.chat or None,
            "prompt_cache_key": "" if own else None,
        }

    def body(self, prompt: Prompt) -> dict[str, Any]:
        """Makes the body of a call; the cache key is the same for all calls of a run."""
        settings = self._parameters.sent
        body = {"model": self.model.weights, "messages": prompt.messages, **settings}
        if "prompt_cache_key" in body:
            beginning = f"{self.model.weights}\n{prompt.text[: prompt.static]}"
            digest = hashlib.sha256(beginning.encode()).hexdigest()
            body["prompt_cache_key"] = f"cradle-{digest[:16]}"
        return body

    def read(self, reply: object) -> Answer:
        """Reads a chat completion."""
        choice = lookup(reply, "choices", 0)
        message = lookup(choice, "message")
        if not isinstance(message, dict):
            return unreadable(reply, "a chat completion", "choice")
        text, ended = text_of(lookup(message, "content")), lookup(choice, "finish_reason")
        declined = lookup(message, "refusal")
        # Gemini adds a word of its own: "content_filter: PROHIBITED_CONTENT".
        if isinstance(ended, str) and ended.startswith("content_filter"):
            ended, declined = "content_filter", ended.replace("_", " ", 1)
        return finished(
            text,
            cut=f"cut at {self.decoding.max_new_tokens} tokens" if ended == "length" else None,
            declined=declined,
            failed=unfinished(str(declined or text), "finish_reason", ended, _ENDINGS),
            ending="missing" if ended is None else None,
            served=_served(reply),
            tokens_in=tokens(reply, "usage", "prompt_tokens"),
            tokens_cached=tokens(reply, "usage", "prompt_tokens_details", "cached_tokens"),
            tokens_written=tokens(reply, "usage", "prompt_tokens_details", "cache_write_tokens"),
            tokens_out=_tokens_out(reply),
        )


def _served(reply: object) -> str | None:
    """The model's name at the service and its fingerprint, as far as there are any."""
    names = (lookup(reply, "model"), lookup(reply, "system_fingerprint"))
    return " ".join(name for name in names if isinstance(name, str) and name) or None


def _tokens_out(reply: object) -> int | None:
    """Tokens of the answer with its reasoning, which Gemini counts in the total only."""
    out = tokens(reply, "usage", "completion_tokens")
    total, into = tokens(reply, "usage", "total_tokens"), tokens(reply, "usage", "prompt_tokens")
    if out is None or total is None or into is None:
        return out
    return max(out, total - into)
