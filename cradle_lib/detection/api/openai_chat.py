"""Chat Completions with OpenAI's SDK: OpenAI, Gemini's compatible endpoint, local servers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from copy import copy
from typing import Any, Final

from cradle_lib.detection.api.batches import BatchRefusedError, Intent, with_token
from cradle_lib.detection.api.faults import Fault
from cradle_lib.detection.api.remote import Remote
from cradle_lib.detection.api.replies import (
    believed,
    finished,
    look,
    refused,
    text_of,
    tokens,
    unreadable,
)
from cradle_lib.detection.session import Answer, Prompt

# Under which name a batch's metadata hold its token.
_TOKEN: Final = "cradle"
_ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})


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
        settings: dict[str, Any] = {
            "max_completion_tokens" if own else "max_tokens": self.decoding.max_new_tokens,
            "temperature": self.decoding.temperature,
            "seed": self.decoding.seed,
            "chat_template_kwargs": self.decoding.chat or None,
            "prompt_cache_key": "" if own else None,
        }
        told = {name: value for name, value in settings.items() if value is not None}
        return told | self.decoding.extra

    def body(self, prompt: Prompt, settings: dict[str, Any]) -> dict[str, Any]:
        """Makes the body of a call; the cache key is the same for all calls of a run."""
        body = {"model": self.model.weights, "messages": prompt.messages, **settings}
        if "prompt_cache_key" in body:
            beginning = f"{self.model.weights}\n{prompt.text[: prompt.static]}"
            digest = hashlib.sha256(beginning.encode()).hexdigest()
            body["prompt_cache_key"] = f"cradle-{digest[:16]}"
        return body

    async def submit(self, asked: Mapping[str, Prompt], token: str) -> str:
        """Uploads the questions as a file, and sends the file as a batch."""
        lines = (
            {
                "custom_id": with_token(key, token),
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": self.body(prompt, self._parameters.sent),
            }
            for key, prompt in asked.items()
        )
        content = "".join(json.dumps(line) + "\n" for line in lines).encode()
        file = await self._client.files.create(file=("batch.jsonl", content), purpose="batch")
        batch = await self._client.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={_TOKEN: token},
        )
        return str(batch.id)

    async def perhaps(self, intent: Intent) -> list[str]:
        """Finds the batch whose metadata hold the token; the newest stand first."""
        async for batch in self._client.batches.list(limit=100):
            if (batch.metadata or {}).get(_TOKEN) == intent.token:
                return [str(batch.id)]
            if batch.created_at < intent.since.timestamp():
                break
        return []

    async def ended(self, batch: str) -> bool:
        """Whether a batch is finished."""
        return (await self._client.batches.retrieve(batch)).status in _ENDED

    async def results(self, batch: str) -> AsyncIterator[tuple[str, Answer | Fault]]:
        """Reads the files of answers and of errors.

        Raises:
            EngineError: If the batch was refused as a whole.
        """
        made = copy(self._parameters)
        found = await self._client.batches.retrieve(batch)
        files = [name for name in (found.output_file_id, found.error_file_id) if name]
        if found.status == "failed":
            errors = (found.errors.data if found.errors else None) or ()
            told = self._clean("; ".join(str(error.message) for error in errors))
            raise BatchRefusedError(f"{self.model.name}: batch {batch} was refused: {told}")
        for name in files:
            content = await self._client.files.content(name)
            for line in filter(str.strip, content.text.split("\n")):
                reply = json.loads(line)
                response = look(reply, "response") or {"status_code": 500, "body": reply}
                status = tokens(response, "status_code") or 500
                result = self.result(made, look(response, "body"), status)
                yield str(look(reply, "custom_id")), result

    def read(self, reply: object) -> Answer:
        """Reads a chat completion."""
        choice = look(reply, "choices", 0)
        message = look(choice, "message")
        if not isinstance(message, dict):
            return unreadable(reply, "a chat completion", "choice")
        ended = str(look(choice, "finish_reason"))
        wrote = text_of(look(message, "content"))
        counts = believed(
            wrote,
            tokens_in=tokens(reply, "usage", "prompt_tokens"),
            tokens_cached=tokens(reply, "usage", "prompt_tokens_details", "cached_tokens"),
            tokens_written=tokens(reply, "usage", "prompt_tokens_details", "cache_write_tokens"),
            tokens_out=_tokens_out(reply),
        )
        answer = finished(
            wrote,
            cut=f"cut at {self.decoding.max_new_tokens} tokens" if ended == "length" else None,
            served=_served(reply),
            **counts,
        )
        # Gemini adds a word of its own: "content_filter: PROHIBITED_CONTENT".
        if ended.startswith("content_filter"):
            return refused(answer, ended.replace("_", " ", 1))
        if look(message, "refusal"):
            return refused(answer, look(message, "refusal"))
        return answer


def _served(reply: object) -> str | None:
    """The model's name at the service and its fingerprint, as far as there are any."""
    names = (look(reply, "model"), look(reply, "system_fingerprint"))
    return " ".join(name for name in names if isinstance(name, str) and name) or None


def _tokens_out(reply: object) -> int | None:
    """Tokens of the answer with its reasoning, which Gemini counts in the total only."""
    out = tokens(reply, "usage", "completion_tokens")
    total, into = tokens(reply, "usage", "total_tokens"), tokens(reply, "usage", "prompt_tokens")
    if out is None or total is None or into is None:
        return out
    return max(out, total - into)
