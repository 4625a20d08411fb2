"""Chat Completions with OpenAI's SDK: OpenAI, Gemini's compatible endpoint, local servers."""

from __future__ import annotations

from typing import Any, Final

from cradle_engines.api.blocks import is_block
from cradle_engines.api.client import Remote
from cradle_engines.api.replies import (
    completed_answer,
    fields_of,
    lookup,
    text_of,
    tokens,
    unreadable,
)
from cradle_lib.detection.models.addresses import host_of
from cradle_lib.detection.protocol.session import Answer

# Text Generation Inference before version 2.3 sends "eos_token", Together sends "eos"; Inspect
# reads the latter as "stop", too.
_ENDINGS: Final = dict.fromkeys(("stop", "eos", "eos_token", "content_filter"))

_OUTPUT: Final = ("usage", "completion_tokens")


class OpenAIChat(Remote):
    """Asks any server with the Chat Completions API."""

    uses = frozenset({"max_new_tokens", "temperature", "seed", "chat", "extra"})
    package = "openai"
    client = "AsyncOpenAI"
    endpoint = "https://api.openai.com/v1"
    path = "/chat/completions"
    listing = "/models"
    limits = ("max_tokens", "max_completion_tokens")

    def headers(self) -> dict[str, Any]:
        """Omits the OpenAI account of the environment in calls to other servers."""
        import openai

        account = ("OpenAI-Organization", "OpenAI-Project") if self.model.base_url else ()
        return dict.fromkeys(account, openai.Omit())

    def usual_limit(self) -> str:
        """Names the limit: OpenAI's newer models accept only ``max_completion_tokens``.

        Many other servers know only ``max_tokens``.
        """
        own = host_of(self.model).endswith((".openai.com", ".openai.azure.com"))
        return "max_completion_tokens" if own else "max_tokens"

    def settings(self) -> dict[str, Any]:
        """Gives the entry's settings as parameters; they are sent only if the entry sets them."""
        return {
            "temperature": self.decoding.temperature,
            "seed": self.decoding.seed,
            "chat_template_kwargs": self.decoding.chat or None,
        }

    def read(self, reply: object) -> Answer:
        """Reads a chat completion."""
        choice = lookup(reply, "choices", 0)
        message, ended = lookup(choice, "message"), lookup(choice, "finish_reason")
        declined = lookup(message, "refusal")
        if is_block(ended):
            ended, declined = "content_filter", declined or ended.replace("_", " ", 1)
        elif withheld := _withheld(reply):
            ended, declined = "content_filter", withheld
        elif not isinstance(message, dict):
            return unreadable(reply, "a chat completion", "choice")
        if lookup(message, "tool_calls"):
            # Some servers say "stop" after a call of a tool, too.
            ended = "tool_calls"
        text = text_of(lookup(message, "content"))
        return completed_answer(
            text,
            "finish_reason",
            ended,
            _ENDINGS | {"length": f"cut at {self.decoding.max_new_tokens} tokens"},
            declined=declined,
            served=_served(reply),
            tokens_in=tokens(reply, "usage", "prompt_tokens"),
            tokens_cached=tokens(reply, "usage", "prompt_tokens_details", "cached_tokens"),
            tokens_written=tokens(reply, "usage", "prompt_tokens_details", "cache_write_tokens"),
            tokens_out=_tokens_out(reply),
        )


def _withheld(reply: object) -> str | None:
    """Why a chat completion has no choice and no token of an answer; ``None`` for any other reply.

    Gemini's compatible endpoint sends this instead of the error of its content filter.
    """
    is_completion = lookup(reply, "object") == "chat.completion" or lookup(reply, "usage")
    if not is_completion or lookup(reply, "choices") or tokens(reply, *_OUTPUT):
        return None
    named = (value for name, value in fields_of(reply) if name == "block_reason" and value)
    return f"the provider withheld the answer ({next(named, 'no reason given')})"


def _served(reply: object) -> str | None:
    """The service's name of the model, its provider and its fingerprint, as far as reported.

    OpenRouter reports the provider to which it forwarded the question.
    """
    names = [lookup(reply, name) for name in ("model", "provider", "system_fingerprint")]
    return " ".join(name for name in names if isinstance(name, str) and name) or None


def _tokens_out(reply: object) -> int | None:
    """Tokens of the answer with its reasoning, which Gemini counts in the total only."""
    out = tokens(reply, *_OUTPUT)
    total, into = tokens(reply, "usage", "total_tokens"), tokens(reply, "usage", "prompt_tokens")
    if out is None or total is None or into is None:
        return out
    return max(out, total - into)
