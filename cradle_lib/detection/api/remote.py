"""What the API engines share: how a call is made, and what comes back from it.

The SDKs' own retries are switched off (``max_retries=0``), because they retry what
can't succeed, wait as long as a server says, and bound the time of a read, not of a
call. Here every call has a total deadline, and :mod:`.dispatch` decides what follows: an
answer that came is written before the next question of its dialogue is asked, and Ctrl-C
lets calls in flight end and keeps their answers.

Bodies are sent with the SDK's own ``post``, and replies read as plain JSON: the typed
methods don't know every parameter that services know, take apart each message of a
request on the way, and turn an unexpected reply into objects that lack what their types
promise.
"""

from __future__ import annotations

import asyncio
import importlib
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, ClassVar, Final, Self
from urllib.parse import urlsplit

from cradle_lib.corpus import Corpus
from cradle_lib.detection.api.batches import MOST, Batches, Provider
from cradle_lib.detection.api.bounded import bounded_stream
from cradle_lib.detection.api.dispatch import Dispatcher
from cradle_lib.detection.api.faults import Fault, Reply, fault_of_error, fault_of_status
from cradle_lib.detection.api.keys import Redactor, find_key
from cradle_lib.detection.api.parameters import Parameters
from cradle_lib.detection.api.patience import Patience
from cradle_lib.detection.api.proxy import find_proxy, place_of
from cradle_lib.detection.api.replies import one_line
from cradle_lib.detection.api.served import affinity, require_served, served_names
from cradle_lib.detection.engine import Emit, Engine, Options, Questions
from cradle_lib.detection.local.loading import require_packages
from cradle_lib.detection.local.quiet import unlogged
from cradle_lib.detection.models.model import Decoding, Model
from cradle_lib.detection.session import Answer, Prompt
from cradle_lib.errors import EngineError, printable

LONGEST_REASON: Final = 300
CONNECT: Final = 10.0  # Seconds to make a connection.
# What carries the SDKs' requests.
_CARRIERS: Final = ("httpx2", "aiohttp")


class Remote(Engine, Provider):
    """Drives many sessions at once against one endpoint.

    Args:
        model: An entry of the registry.
        options: Concurrency, and where to say what the user should know.
        patience: How long to go on with a service that does not answer.

    Raises:
        EngineError: If the SDK is not installed, the key is not in the environment or stands in
            ``base_url``, or the environment's proxy can't be used.

    Attributes:
        lost: Takes a failed prediction for each call that brought no answer, although it may be
            charged, and is made again or given up. It is no answer to its question.
    """

    kind = "service"
    needs_weights = True
    package: str
    client: str
    path: str
    # Where a server of one's own lists what it serves; empty if there is no such place.
    listing: ClassVar[str] = ""

    @classmethod
    def create(cls, model: Model, corpus: Corpus, options: Options) -> Self:
        """Makes the engine; the package and the key must be there."""
        return cls(model, options)

    def __init__(self, model: Model, options: Options, patience: Patience | None = None) -> None:
        require_packages(self.package, "aiohttp", extra="api", model=model)
        self.model = model
        self.decoding = model.decoding or Decoding()
        self.patience = patience or Patience.of(options.deadline)
        self._options = options
        self.base = (model.base_url or self.endpoint).rstrip("/")
        # Whole, so that the SDK need not put it together for every call.
        self._address = self.base + self.path
        self._key = find_key(model)
        self._hide = Redactor(self._key)
        path = urlsplit(self.base).path
        if self._hide(path) != path:
            raise EngineError(
                f"{model.name}: 'base_url' in models.yml holds the key. Take it out: a key comes "
                "from the environment only."
            )
        self._proxy = find_proxy(self.base)
        through = f" through the proxy {place_of(self._proxy)}" if self._proxy else ""
        self._place = f"{place_of(self.base)}{through}"
        self._sdk = importlib.import_module(self.package)
        self._parameters = Parameters({})
        self._dispatcher: Dispatcher | Batches | None = None
        self.lost: Emit = lambda _: None

    def headers(self) -> dict[str, Any]:
        """Gives the headers that differ from the SDK's own."""
        return {}

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Says what the registry asks for, as parameters of a call."""

    @abstractmethod
    def body(self, prompt: Prompt, settings: dict[str, Any]) -> dict[str, Any]:
        """Makes the body of a call: the model's name, the messages, and the settings."""

    @abstractmethod
    def read(self, reply: object) -> Answer:
        """Reads the reply to a call, whatever JSON, or text, it is."""

    def connect(self) -> AbstractAsyncContextManager[Any]:
        """Makes the SDK's client: without retries of its own, by the way that was agreed to."""
        import httpx2

        timeout = httpx2.Timeout(None, connect=CONNECT)
        client = self._sdk.DefaultAioHttpClient(
            timeout=timeout,
            # Certificates may come from the environment; where requests go does not.
            verify=httpx2.create_ssl_context(),
            trust_env=False,
            proxy=self._proxy,
            event_hooks={"response": [self._bound]},
        )
        kind = getattr(self._sdk, self.client)
        made: AbstractAsyncContextManager[Any] = kind(
            api_key=self._key or "none",
            base_url=self.base,
            max_retries=0,
            timeout=timeout,
            http_client=client,
            default_headers={"Accept-Encoding": "identity", **self.headers()},
        )
        return made

    async def _bound(self, response: Any) -> None:
        response.stream = bounded_stream(response, batch=self._options.batches is not None)

    def stop(self, why: str) -> None:
        """Ends the run: calls in flight come back and are written, no further one begins.

        May be called from ``emit`` or any thread. :meth:`answer_all` then raises an error.

        Args:
            why: The first reason given is the one that is told.
        """
        if self._dispatcher is not None:
            self._dispatcher.stop(why)

    def answer_all(self, sessions: Iterable[Questions], emit: Emit) -> None:
        """Asks many dialogues at once, each of them one turn after the other.

        Raises:
            EngineError: If the service can't be used or reached, failed too often in a row, did
                not answer for too long, or the run was stopped.
            KeyboardInterrupt: After Ctrl-C, when the calls in flight have ended, or after a
                second one.
        """
        self._parameters = Parameters(self.settings())
        self._dispatcher = dispatcher = self._leader(emit)
        # A thread of its own, because a notebook's kernel already runs an event loop.
        with unlogged(self.package, *_CARRIERS), ThreadPoolExecutor(max_workers=1) as pool:
            future = pool.submit(asyncio.run, self._drive(dispatcher, sessions))
            try:
                future.result()
            except KeyboardInterrupt:
                try:
                    dispatcher.stop("interrupted")
                    self._options.notice(
                        "Interrupted: waiting for the calls in flight. Run the same command again "
                        "to go on. Another Ctrl-C gives these calls up."
                    )
                    wait([future])
                except KeyboardInterrupt:
                    dispatcher.give_up()
                raise
        if dispatcher.error is not None:
            raise dispatcher.error

    def _leader(self, emit: Emit) -> Dispatcher | Batches:
        """Makes what leads this start: batches if they are asked for, or else call by call."""
        if self._options.batches is not None:
            return Batches(
                name=self.model.name,
                path=self._options.batches,
                limit=min(self._options.concurrency, MOST),
                provider=self,
                attempt=self._attempt,
                emit=emit,
                notice=self._options.notice,
                poll=self.patience.poll,
            )
        return Dispatcher(
            name=self.model.name,
            place=self._place,
            limit=self._options.concurrency,
            patience=self.patience,
            call=self._call,
            emit=emit,
            lost=self.lost,
            notice=self._options.notice,
        )

    async def _drive(self, dispatcher: Dispatcher | Batches, sessions: Iterable[Questions]) -> None:
        async with self.connect() as self._client:
            if self.listing and self.model.base_url is not None and not self.model.remote:
                names = await served_names(self._client, self.base + self.listing, CONNECT)
                require_served(self.model, [self._clean(name) for name in names], self._place)
            await dispatcher.run(self._informed(sessions))

    def _informed(self, sessions: Iterable[Questions]) -> Iterator[Questions]:
        """What an earlier start learned about parameters need not be learned again."""
        for session in sessions:
            for stored in session.taken:
                self._parameters.drop(stored.dropped)
            yield session

    async def _call(self, prompt: Prompt) -> Reply:
        """Makes one call."""
        clock = asyncio.get_running_loop().time
        sent, dropped = self._parameters.sent, self._parameters.dropped
        started = clock()
        reply = await self._once(
            lambda: self._client.post(
                self._address,
                body=self.body(prompt, sent),
                cast_to=object,
                # Text goes to the host that was agreed to, and not where that one points.
                options={"follow_redirects": False, "headers": affinity(self.model, prompt)},
            )
        )
        found: Answer | Fault
        if isinstance(reply, Fault):
            found = self._judged(reply, sent)
        else:
            found = self._cleaned(self.read(reply))
        return Reply(found, clock() - started, dropped)

    async def _once(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Gives what a call brings within its deadline, or why it brought nothing."""
        try:
            async with asyncio.timeout(self.patience.deadline):
                return await call()
        except TimeoutError:
            return Fault("retry", f"no answer within {self.patience.deadline:g} s")
        except Exception as error:
            fault = fault_of_error(self._sdk, error)
            if fault is None:
                raise
            return fault

    def _judged(self, fault: Fault, sent: dict[str, Any]) -> Fault:
        """Leaves a parameter out from now on if that was the trouble."""
        if self._drop(sent, fault):
            fault = replace(fault, kind="again")
        return replace(fault, reason=self._clean(fault.reason))

    def _cleaned(self, answer: Answer) -> Answer:
        """Takes the key out of an answer."""
        return replace(
            answer,
            text=self._hide(answer.text),
            reason=None if answer.reason is None else self._clean(answer.reason),
            served=self._clean(answer.served) if answer.served else None,
        )

    async def _attempt(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Makes a call about a batch, again where that may help.

        Raises:
            EngineError: If it does not help.
        """
        patience = self.patience
        for number in range(1, patience.attempts + 1):
            found = await self._once(call)
            if not isinstance(found, Fault):
                return found
            if found.kind != "retry" or number == patience.attempts:
                break
            pause = patience.base * 2.0 ** (number - 1)
            await asyncio.sleep(min(pause if found.wait is None else found.wait, patience.cap))
        raise EngineError(
            f"{self.model.name}: the batch interface of {self._place}: "
            f"{self._clean(found.reason)}. What was sent is kept: run the same command again."
        )

    def result(self, made: Parameters, reply: object, status: int = 200) -> Answer | Fault:
        """Reads the result of one question of a batch.

        Args:
            made: The parameters of all its questions.
            reply: The body that a call of its own would have brought.
            status: Its HTTP status.
        """
        sent, dropped = made.sent, made.dropped
        if status != 200:
            return self._judged(fault_of_status(status, {}, reply), sent)
        return replace(self._cleaned(self.read(reply)), dropped=dropped)

    def _drop(self, sent: dict[str, Any], fault: Fault) -> bool:
        """Leaves out what the service does not take; false if that was not the trouble."""
        if fault.param is None:
            return False
        name = self._parameters.refused(sent, fault.reason, fault.param or None)
        if name is None:
            return False
        if name in self._parameters.sent:
            self._parameters.drop([name])
            self._options.notice(
                f"{self.model.name} does not take {name}: its answers from here on are given "
                "without it, and say so."
            )
        return True

    def _clean(self, text: str) -> str:
        """Takes the key out of a service's words, and then shortens them."""
        return printable(self._hide(one_line(text[: 10 * LONGEST_REASON]))[:LONGEST_REASON])
