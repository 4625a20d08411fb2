"""Chat Completions with OpenAI's SDK: OpenAI, Gemini's compatible endpoint, local servers."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from cradle_lib.detection.answers import Outcome
from cradle_lib.detection.engines.faults import Fault, fault_of_status, finished, refused
from cradle_lib.detection.engines.remote import Remote
from cradle_lib.detection.session import Answer, Prompt

ENDPOINT: Final = "https://api.openai.com/v1"


class OpenAIChat(Remote):
    """Asks any server that speaks Chat Completions."""

    package = "openai"

    def connect(self, key: str) -> AbstractAsyncContextManager[Any]:
        """Makes the client; the endpoint is the registry's, whatever the environment says."""
        import openai

        return openai.AsyncOpenAI(
            api_key=key or "none",
            base_url=self.model.base_url or ENDPOINT,
            max_retries=0,
            timeout=self.patience.deadline,
        )

    async def call(self, client: Any, prompt: Prompt) -> Answer:
        """Sends one prompt.

        OpenAI's newer models know the limit as ``max_completion_tokens`` only; other
        servers know ``max_tokens``. Temperature is sent only if the registry sets it.
        """
        from openai.types.chat import ChatCompletion

        limit = self.decoding.max_new_tokens
        own = self.model.base_url is None
        settings: dict[str, Any] = {"max_completion_tokens" if own else "max_tokens": limit}
        if self.decoding.temperature is not None:
            settings["temperature"] = self.decoding.temperature
        if self.decoding.chat:
            settings["extra_body"] = {"chat_template_kwargs": self.decoding.chat}
        reply = await client.chat.completions.create(
            model=self.model.weights, messages=prompt.messages, **settings
        )
        if not isinstance(reply, ChatCompletion):
            return Answer("", Outcome.FAILED, "the answer is not JSON of a chat completion")
        if not reply.choices or reply.choices[0].message is None:
            return Answer("", Outcome.FAILED, "the answer holds no choice")
        choice, usage = reply.choices[0], reply.usage
        details = usage.prompt_tokens_details if usage else None
        answer = finished(
            choice.message.content,
            cut=choice.finish_reason == "length",
            limit=limit,
            tokens_in=usage.prompt_tokens if usage else None,
            tokens_cached=details.cached_tokens if details else None,
            tokens_out=usage.completion_tokens if usage else None,
        )
        if choice.finish_reason == "content_filter":
            return refused(answer, "content filter")
        if choice.message.refusal:
            return refused(answer, str(choice.message.refusal))
        return answer

    def fault(self, error: Exception) -> Fault | None:
        """Reads the SDK's errors, and what slips through it: broken JSON in a good response."""
        import openai

        match error:
            case openai.APIStatusError():
                body = error.body if isinstance(error.body, dict) else {}
                code, kind = body.get("code"), body.get("type")
                return fault_of_status(
                    error.status_code, error.response.headers, code, kind, error.message
                )
            case openai.APIConnectionError():
                return Fault("retry", f"no connection ({type(error).__name__})")
            case openai.OpenAIError() | json.JSONDecodeError():
                return Fault("failed", f"the answer can't be read ({type(error).__name__})")
        return None
