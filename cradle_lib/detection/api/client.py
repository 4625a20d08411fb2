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
import hashlib
import importlib
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any, ClassVar, Final, Self
from urllib.parse import urlsplit

from cradle_lib.corpus import Corpus
from cradle_lib.detection.api.dispatch import Dispatcher, Patience
from cradle_lib.detection.api.faults import Fault, error_in, fault_in_reply, fault_of_error
from cradle_lib.detection.api.keys import Redactor, find_key
from cradle_lib.detection.api.network import find_proxy, place_of, tls_for
from cradle_lib.detection.api.parameters import Parameters
from cradle_lib.detection.api.replies import (
    lookup,
    one_line,
    read_bounded,
)
from cradle_lib.detection.engine import Emit, Engine, Options, Questions
from cradle_lib.detection.local.local_engine import require_packages
from cradle_lib.detection.local.quiet import unlogged
from cradle_lib.detection.model import Decoding, Model
from cradle_lib.detection.parsing import Outcome
from cradle_lib.detection.session import Answer, Prompt
from cradle_lib.errors import EngineError, printable

LONGEST_REASON: Final = 300
CONNECT: Final = 10.0  # Seconds to make a connection.
# What carries the SDKs' requests.
_CARRIERS: Final = ("httpx2", "aiohttp")


class Remote(Engine):
    """Drives many sessions at once against one endpoint.

    Raises:
        EngineError: If the SDK is not installed, the key is not in the environment or stands in
            ``base_url``, or the environment's proxy or certificates can't be used.

    Attributes:
        patience: How long to go on with a service that does not answer.
        place: The service's host and port, and the proxy's, for sentences.
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

    def __init__(self, model: Model, options: Options) -> None:
        require_packages(self.package, "aiohttp", extra="api", model=model)
        self.model = model
        self.decoding = model.decoding or Decoding()
        self.options = options
        self.patience = Patience.of(options.deadline)
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
        self.place = f"{place_of(self.base)}{through}"
        self._tls = tls_for(self.base, self._proxy)
        self._sdk = importlib.import_module(self.package)
        wanted = {name: value for name, value in self.settings().items() if value is not None}
        self._parameters = Parameters(wanted | self.decoding.extra)
        self._dispatcher: Dispatcher | None = None
        self._reported_missing = False
        self.lost: Emit = lambda _: None

    # ---- What the two interfaces differ in -------------------------------------------

    @abstractmethod
    def headers(self) -> dict[str, Any]:
        """Gives the headers that differ from the SDK's own."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Says what the registry asks for, as parameters of a call; ``None`` for nothing."""

    @abstractmethod
    def body(self, prompt: Prompt) -> dict[str, Any]:
        """Makes the body of a call: the model's name, the messages, and the parameters."""

    @abstractmethod
    def read(self, reply: object) -> Answer:
        """Reads the reply to a call, whatever JSON, or text, it is, if it holds no error."""

    # ---- A run -----------------------------------------------------------------------

    def stop(self, why: str) -> None:
        """Ends the run: calls in flight come back and are written, no further one begins.

        May be called from ``emit`` or any thread. :meth:`answer_all` then raises an error, with
        the first reason given.
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
        self._dispatcher = dispatcher = Dispatcher(self, emit)
        # A thread of its own, because a notebook's kernel already runs an event loop.
        with unlogged(self.package, *_CARRIERS), ThreadPoolExecutor(max_workers=1) as pool:
            future = pool.submit(asyncio.run, self._drive(dispatcher, sessions))
            try:
                future.result()
            except KeyboardInterrupt:
                try:
                    dispatcher.stop("interrupted")
                    self.options.notice(
                        "Interrupted: waiting for the calls in flight. Run the same command again "
                        "to go on. Another Ctrl-C gives these calls up."
                    )
                    wait([future])
                except KeyboardInterrupt:
                    dispatcher.give_up()
                raise
        if dispatcher.error is not None:
            raise dispatcher.error

    async def _drive(self, dispatcher: Dispatcher, sessions: Iterable[Questions]) -> None:
        async with self.connect() as self._client:
            if self.listing and self.model.base_url is not None and not self.model.remote:
                await self._require_served()
            await dispatcher.run(self._informed(sessions))

    def connect(self) -> Any:
        """Makes the SDK's client: without retries of its own, by the way that was agreed to."""
        import httpx2

        async def bound(response: Any) -> None:
            await read_bounded(response)

        timeout = httpx2.Timeout(None, connect=CONNECT)
        client = self._sdk.DefaultAioHttpClient(
            timeout=timeout,
            verify=self._tls,
            trust_env=False,
            proxy=self._proxy,
            event_hooks={"response": [bound]},
        )
        return getattr(self._sdk, self.client)(
            api_key=self._key or "none",
            base_url=self.base,
            max_retries=0,
            timeout=timeout,
            http_client=client,
            default_headers={"Accept-Encoding": "identity", **self.headers()},
        )

    async def _require_served(self) -> None:
        """Refuses a server of one's own that lists its models, if this one is not among them.

        If it has no such list, or can't be reached, its questions say so.
        """
        try:
            async with asyncio.timeout(CONNECT):
                reply = await self._get(self.base + self.listing, object)
        except Exception:  # Whatever an SDK makes of a server that has no such list.
            return
        found = lookup(reply, "data")
        listed = [lookup(each, "id") for each in found] if isinstance(found, list) else []
        names = [self.clean(name) for name in listed if isinstance(name, str)]
        wanted = self.model.weights
        if names and wanted not in names:
            raise EngineError(
                f"{self.place} serves {', '.join(names[:5])}, and {self.model.id} asks for "
                f"{wanted}. Start it with --served-model-name {wanted}, or ask for the model that "
                "it serves."
            )

    def _informed(self, sessions: Iterable[Questions]) -> Iterator[Questions]:
        """What an earlier start learned about parameters need not be learned again."""
        for session in sessions:
            for stored in session.taken:
                self._parameters.drop(stored.dropped)
            yield session

    # ---- A call ----------------------------------------------------------------------

    async def call(self, prompt: Prompt) -> Answer | Fault:
        """Asks one question."""
        clock = asyncio.get_running_loop().time
        judge, body = self.judge(), self.body(prompt)
        started = clock()
        # Text goes to the host that was agreed to, and not where that one points.
        options = {"follow_redirects": False, "headers": self._affinity(prompt)}
        found = await self.once(lambda: self._post(body, options))
        return replace(judge(found), seconds=clock() - started)

    async def _post(self, body: dict[str, Any], options: dict[str, Any]) -> Answer | Fault:
        """Sends a question, and reads what comes back with status 200, an error in it included."""
        import httpx2

        response = await self._client.post(
            self._address, body=body, cast_to=httpx2.Response, options=options
        )
        # As the SDKs read it; a gateway's page is no answer.
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        reply = response.json() if kind.endswith("json") else response.text
        error = error_in(reply)
        return self.read(reply) if error is None else fault_in_reply(error, response.headers)

    def _affinity(self, prompt: Prompt) -> dict[str, str]:
        """Names the dialogue, in a way that can't be read, to a router before several servers.

        It sends what has one name to one server, in whose cache the question's beginning lies.
        """
        header = self.model.caching.affinity
        if header is None:
            return {}
        return {header: hashlib.sha256(prompt.dialogue.encode()).hexdigest()[:16]}

    async def _get(self, address: str, kind: type) -> Any:
        return await self._client.get(address, cast_to=kind, options={"follow_redirects": False})

    async def once(self, call: Callable[[], Awaitable[Any]]) -> Any:
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

    def _report_missing_ending(self, answer: Answer) -> None:
        """Says once that the service does not tell how its answers end."""
        if answer.ending is None or answer.outcome is Outcome.FAILED or self._reported_missing:
            return
        self._reported_missing = True
        self.options.notice(
            f"{self.model.name}: {self.place} does not say how its answers end. They count as "
            'complete, and each is recorded with "ending": "missing".'
        )

    def judge(self) -> Callable[[Answer | Fault], Answer | Fault]:
        """Gives the reader of what comes of calls that are made now.

        It takes out the key. A parameter that the service does not take is left out from now on,
        and every call that was made with it is made again.
        """
        sent, dropped = self._parameters.sent, self._parameters.dropped

        def judge(found: Answer | Fault) -> Answer | Fault:
            if isinstance(found, Answer):
                self._report_missing_ending(found)
                return replace(
                    found,
                    text=self._hide(found.text),
                    reason=None if found.reason is None else self.clean(found.reason),
                    served=self.clean(found.served) if found.served else None,
                    dropped=dropped,
                )
            reason, name = found.reason, None
            if found.param is not None:
                name = self._parameters.refused(sent, reason, found.param)
            if name in self._parameters.sent:
                self._parameters.drop([name])
                self.options.notice(
                    f"{self.model.name} does not take {name}: its answers from here on are given "
                    "without it, and say so."
                )
            kind = found.kind if name is None else "again"
            return replace(found, kind=kind, reason=self.clean(reason), dropped=dropped)

        return judge

    def clean(self, text: str) -> str:
        """Takes the key out of a service's words, and then shortens them."""
        return printable(self._hide(one_line(text[: 10 * LONGEST_REASON]))[:LONGEST_REASON])
