"""Helpers of the tests of API engines: a model, an engine, and services without sockets."""

from __future__ import annotations

import asyncio
import json
import selectors
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from cradle_engines.api import client as service_client
from cradle_engines.api.client import Remote
from cradle_engines.api.dispatch import RetryPolicy
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Model, Options, Outcome, Prediction, Session, make_engine
from cradle_lib.detection.models.model import Decoding
from cradle_lib.errors import EngineError
from cradle_lib.prompts import parse_template

from ...detection.dialogues import make_corpus
from .fault_server import Reply, chat, message, with_prompt_tokens

KEY = "sk-planted-0123456789"
# An address where no server listens, also for fake services.
NOWHERE = "http://127.0.0.1:9"
SDKS: list[str] = ["openai", "anthropic"]
TEMPLATE = parse_template("short", "Label.\n{history}\n{current_turn}")
GOOD: dict[str, Callable[..., Reply]] = {"openai": chat, "anthropic": message}
# No waits between attempts.
NO_WAIT = RetryPolicy(attempts=3, deadline=20.0, base=0.0, failures=4, connect=0.0)
HELLO = make_corpus([[("User", "Hello.", "none")]])


def make_model(engine: str, url: str | None, **decoding: Any) -> Model:
    """Makes a model that is served at ``url``; ``None`` is the provider's own endpoint."""
    return Model.model_validate(
        {
            "id": f"m-{engine}",
            "name": "Tested",
            "group": "proprietary",
            "engine": engine,
            "weights": "smollm2-135m",
            "prompt": "short",
            "decoding": Decoding(**({"max_new_tokens": 8} | decoding)),
            "base_url": f"{url}/v1" if engine == "openai" and url else url,
            "remote": url is None,
            "key": {"variable": "TEST_KEY"},
        }
    )


def make_remote(
    model: Model, policy: RetryPolicy | None = NO_WAIT, concurrency: int = 2, **options: Any
) -> Remote:
    engine = make_engine(model, HELLO, Options(concurrency=concurrency, **options))
    assert isinstance(engine, Remote)
    if policy is not None:
        engine.policy = policy
    return engine


def ask(model: Model, policy: RetryPolicy | None = NO_WAIT) -> Prediction:
    """Asks one question."""
    found: list[Prediction] = []
    session = Session(HELLO.dialogues[0], TEMPLATE)
    make_remote(model, policy).answer_all([session], found.append)
    assert len(found) == 1
    return found[0]


class SkippingLoop(asyncio.SelectorEventLoop):
    """An event loop with a simulated clock that skips to the next timer instead of waiting."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_SkippingSelector(self))

    def time(self) -> float:
        return self.now


class _SkippingSelector(selectors.DefaultSelector):
    def __init__(self, loop: SkippingLoop) -> None:
        super().__init__()
        self.loop = loop

    def select(self, timeout: float | None = None) -> Any:
        assert timeout is not None, "deadlock: no timer and no event is pending"
        self.loop.now += max(timeout, 0.0)
        return super().select(0)


def sessions(corpus: Corpus, stored: list[Prediction] | None = None) -> list[Session]:
    kept = [p for p in stored or [] if p.outcome is not Outcome.FAILED]
    return [
        Session(d, TEMPLATE, stored=[p for p in kept if p.dialogue == d.id])
        for d in corpus.dialogues
    ]


def long_corpus(dialogues: int, turns: int) -> Corpus:
    return make_corpus(
        [[("User", f"turn {i}.{j}", "none") for j in range(turns)] for i in range(dialogues)]
    )


Handler = Callable[[httpx2.Request], Awaitable[httpx2.Response]]


class FakeService:
    """A service without sockets and with a simulated clock, behind the real SDK.

    Args:
        monkeypatch: Replaces the event loop.
        handler: Answers requests; may sleep, and raise network errors.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, handler: Handler) -> None:
        self.handler = handler
        self.seconds = 0.0
        self.in_flight = 0
        self.most_in_flight = 0
        self.call_times: list[float] = []
        monkeypatch.setattr(service_client.asyncio, "run", self._run)  # type: ignore[attr-defined]

    def run_engine(
        self, engine: Remote, sessions: Iterable[Session], emit: Callable[[Prediction], None]
    ) -> None:
        sdk: Any = openai if engine.package == "openai" else anthropic
        make = sdk.AsyncOpenAI if sdk is openai else sdk.AsyncAnthropic

        def connect() -> AbstractAsyncContextManager[Any]:
            transport = httpx2.MockTransport(self._answer)
            client = make(
                api_key=KEY,
                base_url=NOWHERE,
                max_retries=0,
                timeout=None,
                http_client=httpx2.AsyncClient(transport=transport),
            )
            # The SDK would determine the platform in a thread, which the simulated clock breaks.
            client._platform = "Linux"
            return client  # type: ignore[no-any-return]

        engine.connect = connect  # type: ignore[method-assign]
        engine.answer_all(sessions, emit)

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET" and request.url.path.endswith("/models"):
            # No list of models, without delay.
            return httpx2.Response(404)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self.call_times.append(asyncio.get_running_loop().time())
        try:
            reply = await self.handler(request)
            content = with_prompt_tokens(reply.content, json.loads(request.content))
            fields = {k: v for k, v in reply.headers.items() if k != "content-length"}
            return response((reply.status_code, fields, content))
        finally:
            self.in_flight -= 1

    def _run(self, main: Any) -> Any:
        with asyncio.Runner(loop_factory=SkippingLoop) as runner:
            try:
                return runner.run(main)
            finally:
                self.seconds = runner.get_loop().time()


class ServiceRun:
    """A run with a fake service: its predictions, its error, and its notices with their times.

    Args:
        monkeypatch: Replaces the event loop.
        handler: Gives the handler of a call from the service, which has recorded its time.
        policy: Retry policy; by default that of the engine.
        dialogues: Number of dialogues.
        turns: Number of turns of each.
        options: Options of the run.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        handler: Callable[[FakeService], Handler],
        policy: RetryPolicy | None = None,
        dialogues: int = 6,
        turns: int = 4,
        **options: Any,
    ) -> None:
        self.made: list[Prediction] = []
        self.notices: list[tuple[float, str]] = []
        self.error = ""
        self._handler = handler
        self.service = FakeService(monkeypatch, self._answer)
        engine = make_remote(make_model("openai", NOWHERE), policy, notice=self._notice, **options)
        try:
            self.service.run_engine(
                engine, sessions(long_corpus(dialogues, turns)), self.made.append
            )
        except EngineError as error:
            self.error = str(error)

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        return await self._handler(self.service)(request)

    def _notice(self, sentence: str) -> None:
        self.notices.append((asyncio.get_running_loop().time(), sentence))


def after(seconds: float, reply: Reply | None = None) -> Handler:
    """Makes a handler that replies after some seconds; by default with a good answer."""

    async def handler(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(seconds)
        return response(reply or chat())

    return handler


def response(reply: Reply) -> httpx2.Response:
    status, headers, content = reply
    return httpx2.Response(status, headers=headers, content=content)


def joined_text(content: str | list[dict[str, Any]]) -> str:
    """Joins the text of a message that is a string or blocks."""
    if isinstance(content, str):
        return content
    return "".join(block["text"] for block in content)


def prompt_of(request: httpx2.Request) -> str:
    """Returns the user message of a request."""
    return joined_text(json.loads(request.content)["messages"][0]["content"])
