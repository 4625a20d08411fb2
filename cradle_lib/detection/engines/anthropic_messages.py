"""The Messages API with Anthropic's SDK."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from cradle_lib.detection.answers import Outcome
from cradle_lib.detection.engines.faults import Fault, fault_of_status, finished, refused
from cradle_lib.detection.engines.remote import Remote
from cradle_lib.detection.session import Answer, Prompt

ENDPOINT: Final = "https://api.anthropic.com"
# The version that still knows a temperature, which the paper sets to 0; the SDK's own
# default is newer and answers 400 to it.
API_VERSION: Final = "2023-06-01"


class AnthropicMessages(Remote):
    """Asks any server that speaks the Messages API."""

    package = "anthropic"

    def connect(self, key: str) -> AbstractAsyncContextManager[Any]:
        """Makes the client; the endpoint is the registry's, whatever the environment says."""
        import anthropic

        return anthropic.AsyncAnthropic(
            api_key=key or "none",
            base_url=self.model.base_url or ENDPOINT,
            max_retries=0,
            timeout=self.patience.deadline,
            default_headers={"anthropic-version": API_VERSION},
        )

    async def call(self, client: Any, prompt: Prompt) -> Answer:
        """Sends one prompt; the prompt's tokens are counted with those read from a cache."""
        from anthropic.types import Message

        limit = self.decoding.max_new_tokens
        temperature = self.decoding.temperature
        reply = await client.messages.create(
            model=self.model.weights,
            max_tokens=limit,
            messages=prompt.messages,
            # The SDK's signature has lost the parameter, the service has not.
            extra_body=None if temperature is None else {"temperature": temperature},
        )
        if not isinstance(reply, Message):
            return Answer("", Outcome.FAILED, "the answer is not JSON of a message")
        # Fields that the service left out are None, whatever the SDK's types say.
        content: Any = reply.content
        usage: Any = reply.usage
        if not isinstance(content, list):
            return Answer("", Outcome.FAILED, "the answer holds no content")
        cached = (usage.cache_read_input_tokens or 0) if usage else None
        fresh = usage.input_tokens + (usage.cache_creation_input_tokens or 0) if usage else 0
        answer = finished(
            "".join(block.text for block in content if block.type == "text"),
            cut=reply.stop_reason == "max_tokens",
            limit=limit,
            tokens_in=None if cached is None else fresh + cached,
            tokens_cached=cached,
            tokens_out=usage.output_tokens if usage else None,
        )
        if reply.stop_reason == "refusal":
            details = getattr(reply, "stop_details", None)
            explanation = getattr(details, "explanation", None) or "declined"
            return refused(answer, str(explanation))
        return answer

    def fault(self, error: Exception) -> Fault | None:
        """Reads the SDK's errors, and what slips through it: broken JSON in a good response."""
        import anthropic

        match error:
            case anthropic.APIStatusError():
                body = error.body if isinstance(error.body, dict) else {}
                inner = body.get("error")
                kind = inner.get("type") if isinstance(inner, dict) else None
                return fault_of_status(
                    error.status_code, error.response.headers, None, kind, error.message
                )
            case anthropic.APIConnectionError():
                return Fault("retry", f"no connection ({type(error).__name__})")
            case anthropic.AnthropicError() | json.JSONDecodeError():
                return Fault("failed", f"the answer can't be read ({type(error).__name__})")
        return None
