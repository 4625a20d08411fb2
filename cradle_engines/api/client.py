"""Base of the API engines: the connection to a service, a single call, and the run.

The SDKs' own retries are disabled (``max_retries=0``): they repeat calls that can't succeed, such
as those of an account without credit, and have a timeout for each read instead of the whole call.
If a server asks for a wait, Anthropic's SDK waits for any time, and OpenAI's gives up after two
minutes. Here every call has a total timeout, and :mod:`.dispatch` handles retries. Each answer is
written before the next question of its dialogue is asked. Ctrl-C keeps the answers of the calls in
flight.

Requests are sent with the SDK's own ``post``, and replies are read as plain JSON, because the typed
methods lack some parameters of services, and turn an unexpected reply into objects with missing
attributes.
"""

from __future__ import annotations

import asyncio
import importlib
import re
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any, ClassVar, Final, Self
from urllib.parse import urlsplit

from cradle_engines.api.certificates import tls_context
from cradle_engines.api.dispatch import Dispatcher, RetryPolicy
from cradle_engines.api.faults import Fault, error_in, fault_in_reply, fault_of_error
from cradle_engines.api.keys import Redactor, find_key
from cradle_engines.api.replies import lookup
from cradle_engines.api.truncation import TokenCounts
from cradle_engines.library_logs import no_request_logs
from cradle_lib.corpus import Corpus
from cradle_lib.detection.models.addresses import find_proxy, host_and_port
from cradle_lib.detection.models.engine import (
    Emit,
    Engine,
    Options,
    Questions,
    failure,
    require_packages,
    short_reason,
)
from cradle_lib.detection.models.model import Decoding, Model
from cradle_lib.detection.protocol.parsing import Outcome
from cradle_lib.detection.protocol.session import Answer, Prompt
from cradle_lib.errors import CradleError, EngineError

CONNECT: Final = 10.0  # Timeout of a connection attempt, in seconds.
# Tokens of an answer to a test text, which is not used.
_SHORT: Final = 16
# HTTP packages of the SDKs, which may log requests.
_HTTP_PACKAGES: Final = ("httpx2", "aiohttp")


class Remote(Engine):
    """Asks the questions of many sessions in parallel at one endpoint.

    Raises:
        EngineError: If the SDK is not installed, the key is not in the environment or is part of
            ``base_url``, or the environment's proxy or certificates can't be used.

    Attributes:
        policy: Timeouts and retries.
        address: Host and port of the service, and of the proxy, for messages.
    """

    kind = "service"
    needs_weights = True
    package: str
    client: str
    path: str
    # Path under which a server lists its models; empty if the interface has none.
    listing: ClassVar[str] = ""
    # Names of the parameter for the limit of an answer's length. If the service refuses the one
    # that is sent, the other one is used.
    limits: ClassVar[tuple[str, ...]] = ("max_tokens",)

    @classmethod
    def create(cls, model: Model, corpus: Corpus, options: Options) -> Self:
        """Makes the engine; the package and the key must be available."""
        return cls(model, options)

    def __init__(self, model: Model, options: Options) -> None:
        require_packages(self.package, "aiohttp", extra="api", model=model)
        self.model = model
        self.decoding = model.decoding or Decoding()
        self.options = options
        self.policy = RetryPolicy.of(options.deadline, options.silence)
        self.base = (model.base_url or self.endpoint).rstrip("/")
        self._key = find_key(model)
        self._hide = Redactor(self._key)
        path = urlsplit(self.base).path
        if self._hide(path) != path:
            raise EngineError(
                f"{model.name}: 'base_url' in models.yml contains the key. Remove it: keys are "
                "read from the environment only."
            )
        self._proxy = find_proxy(self.base)
        through = f" through the proxy {host_and_port(self._proxy)}" if self._proxy else ""
        self.address = f"{host_and_port(self.base)}{through}"
        self._tls = tls_context(self.base, self._proxy)
        self._sdk = importlib.import_module(self.package)
        given = [name for name in self.limits if name in self.decoding.extra]
        self._limit = next(iter(given), self.usual_limit())
        self._may_switch = not given and len(self.limits) > 1
        self._limited_by: str | None = None
        settings = {self._limit: self.decoding.max_new_tokens, **self.settings()}
        wanted = {name: value for name, value in settings.items() if value is not None}
        self._parameters = wanted | self.decoding.extra
        self._dispatcher: Dispatcher | None = None
        self._reported: set[str] = set()
        # The service's name of the model that answered first.
        self._served: str | None = None
        # A provider's own service refuses long prompts, and test texts would be charged.
        self._counts = TokenCounts(testable=model.base_url is not None and model.prices is None)
        self._has_waited = False

    @abstractmethod
    def headers(self) -> dict[str, Any]:
        """Gives the headers that differ from the SDK's own."""

    def usual_limit(self) -> str:
        """Names the parameter for the limit of an answer's length that is sent first."""
        return self.limits[0]

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Gives the entry's other settings as parameters of a call; ``None`` is not sent."""

    def messages(self, prompt: Prompt) -> list[dict[str, Any]]:
        """Makes the messages of a call."""
        return prompt.messages

    def body(self, prompt: Prompt) -> dict[str, Any]:
        """Makes the body of a call: the model's name, the messages, and the parameters."""
        messages = self.messages(prompt)
        return {"model": self.model.weights, "messages": messages, **self._parameters}

    @abstractmethod
    def read(self, reply: object) -> Answer:
        """Converts a reply, which is any JSON or text that reports no error, to an answer."""

    def limit_calls(self, calls: int) -> None:
        """Limits the calls in flight."""
        self.options = replace(self.options, concurrency=calls)

    def stop(self, why: str) -> None:
        """Ends the run: calls in flight are completed and written, and no further call begins.

        May be called from ``emit`` or any thread. :meth:`answer_all` then raises an error with the
        reason of the first call of this method.
        """
        if self._dispatcher is not None:
            self._dispatcher.stop(why)

    def answer_all(self, sessions: Iterable[Questions], emit: Emit) -> None:
        """Asks about many dialogues in parallel, turn by turn in each.

        Raises:
            EngineError: If the service can't be used or reached, failed too often in a row, did
                not answer for too long, or the run was stopped.
            KeyboardInterrupt: After Ctrl-C, when the calls in flight have ended, or after a
                second one.
        """
        self._dispatcher = dispatcher = Dispatcher(self, emit)
        # A separate thread, because a notebook's kernel already runs an event loop.
        with (
            no_request_logs(self.package, *_HTTP_PACKAGES),
            ThreadPoolExecutor(max_workers=1) as pool,
        ):
            future = pool.submit(asyncio.run, self._drive(dispatcher, list(sessions)))
            try:
                future.result()
            except KeyboardInterrupt:
                try:
                    dispatcher.stop("interrupted")
                    self.options.notice(
                        "Interrupted: waiting for the calls in flight. Run the same command again "
                        "to go on. Another Ctrl-C cancels these calls."
                    )
                    wait([future])
                except KeyboardInterrupt:
                    dispatcher.cancel()
                raise

    async def _drive(self, dispatcher: Dispatcher, sessions: Sequence[Questions]) -> None:
        for session in sessions:
            for stored in session.taken:
                self._report_other_model(stored.served)
        self._testing = asyncio.Lock()
        async with self.connect() as self._client:
            if self.listing and self.model.base_url is not None and not self.model.remote:
                await self._require_served()
            await dispatcher.run(sessions)

    def connect(self) -> Any:
        """Makes the SDK's client, without its retries, for the proxy that the user agreed to."""
        import httpx2

        timeout = httpx2.Timeout(None, connect=CONNECT)
        client = self._sdk.DefaultAioHttpClient(
            timeout=timeout, verify=self._tls, trust_env=False, proxy=self._proxy
        )
        return getattr(self._sdk, self.client)(
            api_key=self._key or "none",
            base_url=self.base,
            max_retries=0,
            timeout=timeout,
            http_client=client,
            default_headers=self.headers(),
        )

    async def _require_served(self) -> None:
        """Refuses a local server whose list of models does not contain this one.

        If the list can't be read, the first question reports the problem.
        """
        options = {"follow_redirects": False}
        try:
            async with asyncio.timeout(CONNECT):
                address = self.base + self.listing
                reply = await self._client.get(address, cast_to=object, options=options)
        except Exception:  # An SDK may raise any exception if the server has no such list.
            return
        found = lookup(reply, "data")
        listed = [lookup(each, "id") for each in found] if isinstance(found, list) else []
        names = [self.clean(name) for name in listed if isinstance(name, str)]
        wanted = self.model.weights
        if names and wanted not in names:
            raise EngineError(
                f"{self.address} serves {', '.join(names[:5])}, but {self.model.id} asks for "
                f"{wanted}. Start the server with --served-model-name {wanted}, or set `weights` "
                "to a model that it serves."
            )

    async def call(self, prompt: Prompt) -> Answer | Fault:
        """Asks one question, and removes the key from all texts of the answer or error."""
        clock = asyncio.get_running_loop().time
        started, sent = clock(), self._limit
        found = await self._post(self.body(prompt))
        if isinstance(found, Fault) and found.limits and self._switch_limit(sent):
            found = await self._post(self.body(prompt))
        seconds = clock() - started
        if isinstance(found, Answer):
            found = await self._check_counts(prompt, found)
        if isinstance(found, Answer):
            if found.ending == "missing" and found.outcome is not Outcome.FAILED:
                self._report_once(
                    "ending",
                    f"{self.address} does not say how its answers end. They count as complete, and "
                    'each is recorded with "ending": "missing".',
                )
            served = self.clean(found.served) if found.served else None
            self._report_other_model(served)
            return replace(
                found,
                text=self._hide(found.text),
                reason=None if found.reason is None else self.clean(found.reason),
                served=served,
                limited_by=self._limited_by,
                seconds=seconds,
            )
        return replace(found, reason=self.clean(found.reason), seconds=seconds)

    async def _post(self, body: dict[str, Any]) -> Answer | Fault:
        """Sends a question with a timeout, and reads the reply or the error.

        Raises:
            CradleError: Errors of this library are passed on.
        """
        import httpx2

        # No redirects: text is sent only to the host that the user agreed to.
        options = {"follow_redirects": False}
        try:
            async with asyncio.timeout(self.policy.deadline):
                response = await self._client.post(
                    self.base + self.path, body=body, cast_to=httpx2.Response, options=options
                )
            # The SDKs' own rule for JSON; a gateway may send an HTML page.
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            reply = response.json() if kind.endswith("json") else response.text
            error = error_in(reply)
            return self.read(reply) if error is None else fault_in_reply(error, response.headers)
        except TimeoutError:
            return Fault("retry", f"no answer within {self.policy.deadline:g} s")
        except CradleError:
            raise
        except Exception as error:
            if (fault := fault_of_error(self._sdk, error)) is not None:
                return fault
            # This program or an SDK has a bug. The exception's own message may quote the key.
            answer = failure(error, self._hide)
            shown = EngineError(answer.reason or "").with_traceback(error.__traceback__)
            return replace(answer, error=shown)

    def _report_other_model(self, served: str | None) -> None:
        """Reports if answers come from different models, or from another one than asked for."""
        self._served = self._served or served
        asked = str(self.model.weights)
        if served is not None and not _is_same_model(asked, served):
            self._report_once(
                "asked",
                f"{self.address} says that {served} answers, but {asked} was asked "
                "for. The name is recorded with each answer.",
            )
        if served not in (None, self._served):
            self._report_once(
                "served",
                f"some answers come from {self._served}, others from {served}. The source of each "
                "is recorded. If the service allows it, choose one model and one provider under "
                "`extra`, and start the run again.",
            )

    def _report_once(self, topic: str, sentence: str) -> None:
        if topic not in self._reported:
            self._reported.add(topic)
            self.options.notice(f"{self.model.name}: {sentence}")

    def _switch_limit(self, sent: str) -> bool:
        """Switches to the other name of the answer's limit, once; ``sent`` was refused.

        Returns:
            Whether the call can be repeated with another name than ``sent``.
        """
        if self._limit == sent and self._may_switch:
            self._may_switch = False
            value = self._parameters.pop(sent)
            self._limit = self._limited_by = next(name for name in self.limits if name != sent)
            self._parameters[self._limit] = value
            self._report_once(
                "limit",
                f"{self.address} does not accept {sent} for this model. The limit of an answer's "
                f"length is sent as {self._limit}, and each answer is recorded with "
                f'"limited_by": "{self._limit}".',
            )
        return self._limit != sent

    async def _check_counts(self, prompt: Prompt, answer: Answer) -> Answer | Fault:
        """Fails an answer if the server has cut the prompt, and drops wrong numbers of tokens.

        Servers are tested first, if needed. If a test must be repeated later, its error is
        returned, and the question is asked again.
        """
        if answer.tokens_in is None or answer.outcome in (Outcome.FAILED, Outcome.REFUSED):
            return answer
        async with self._testing:
            while (text := self._counts.next_test(prompt, answer.tokens_in)) is not None:
                test = Prompt(prompt.dialogue, prompt.turn, text, 0, text, 0)
                shortest = {self._limit: min(_SHORT, self.decoding.max_new_tokens)}
                found = await self._post(self.body(test) | shortest)
                if isinstance(found, Answer):
                    self._counts.record(found.tokens_in)
                elif found.shared and not self._has_waited:
                    self._has_waited = True
                    return found
                else:
                    self._counts.record_error(is_refusal=found.kind == "failed")
        verdict = self._counts.judge(prompt, answer.tokens_in)
        if verdict == "complete" and not self._counts.are_wrong:
            return answer
        explained = self._counts.explain(verdict, len(prompt.text), answer.tokens_in)
        if verdict == "cut":
            reason = f"the server {explained}"
            return replace(answer, text="", outcome=Outcome.FAILED, reason=reason)
        self._report_once("counts", f"{self.address} {explained}")
        return replace(answer, tokens_in=None, tokens_cached=None, tokens_written=None)

    def clean(self, text: str) -> str:
        """Removes the key from a service's message, and shortens it to one line."""
        return short_reason(text, self._hide)


def _is_same_model(asked: str, served: str) -> bool:
    """Whether a service's name may be that of the model asked for, with a date, owner or tag."""

    def letters(name: str) -> str:
        last = name.lower().split("/")[-1].partition(":")[0].removesuffix("-latest")
        return re.sub(r"[^a-z0-9]", "", last)

    short, long = sorted((letters(asked), letters(served.partition(" ")[0])), key=len)
    # The longer name may add a date or the number of a version: 2024-08-06, 0613, 002.
    return re.fullmatch(re.escape(short) + r"(\d{3,})?", long) is not None
