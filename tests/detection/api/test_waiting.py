"""Nobody waits without a word, for ever, or for a service that is not there."""

from __future__ import annotations

import asyncio
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from cradle_lib.detection import Options, Outcome, Prediction, read_journal
from cradle_lib.detection.api.client import Remote
from cradle_lib.detection.api.dispatch import Patience, span
from cradle_lib.detection.run import run
from cradle_lib.errors import EngineError

from .fault_server import FaultServer, chat, error
from .services import (
    HELLO,
    HURRY,
    NOWHERE,
    Handler,
    Imagined,
    long_corpus,
    make_model,
    make_remote,
    response,
    sessions,
)

pytestmark = pytest.mark.usefixtures("api")


class Start:
    """One start of a run against an imagined service: what was made, and said at which second."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, handler: Callable[[int], Handler], **options: Any
    ) -> None:
        self.made: list[Prediction] = []
        self.said: list[tuple[float, str]] = []
        self.error = ""
        self.service = Imagined(monkeypatch, self._answer)
        self._handler = handler
        self.engine = make_remote(
            make_model("openai", NOWHERE),
            options.pop("patience", None),
            notice=self._say,
            **options,
        )

    def drive(self, dialogues: int = 6, turns: int = 4) -> Start:
        try:
            corpus = long_corpus(dialogues, turns)
            self.service.drive(self.engine, sessions(corpus), self.made.append)
        except EngineError as error:
            self.error = str(error)
        return self

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        return await self._handler(len(self.service.begun))(request)

    def _say(self, sentence: str) -> None:
        self.said.append((asyncio.get_running_loop().time(), sentence))


async def hang(request: httpx2.Request) -> httpx2.Response:
    await asyncio.sleep(1e9)
    raise AssertionError


async def refuse(request: httpx2.Request) -> httpx2.Response:
    raise httpx2.ConnectError("no", request=request) from ConnectionRefusedError(111, "refused")


def after(seconds: float, reply: Any = None) -> Handler:
    async def handler(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(seconds)
        return response(reply or chat())

    return handler


def test_a_server_that_never_answers_is_named_within_15_seconds_and_left_after_five_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = Start(monkeypatch, lambda n: hang).drive()
    # At ten seconds, and then at twice the time of the word before.
    assert [at for at, _ in start.said] == [10, 20, 40, 80, 160]
    assert start.said[0][1] == (
        "Tested: no answer from 127.0.0.1:9 for 10 s: it has not replied. "
        "The run stops after 5 min without one."
    )
    assert "no answer within 120 s" in start.said[-1][1]
    assert re.match(
        r"Tested: no answer from 127\.0\.0\.1:9 for 5 min \(no answer within 120 s\)\. Check "
        r"whether the service works\. The answers so far are kept: run the same command",
        start.error,
    )
    assert (start.service.seconds, start.made) == (300, [])
    # Deadlines at 120 and about 241 s: a third call was in flight at the end.
    assert len(start.service.begun) == 3


def test_a_server_that_falls_silent_in_the_middle_is_named_as_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = Start(monkeypatch, lambda n: after(1.0) if n <= 8 else hang).drive()
    last = max(start.service.begun[:8]) + 1.0
    assert last < start.said[0][0] <= last + 15
    assert start.service.seconds == last + 300
    assert len(start.made) == 8


def test_a_slow_service_is_spoken_of_once_and_not_for_every_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = Start(monkeypatch, lambda n: after(30.0), concurrency=1).drive()
    assert {p.outcome for p in start.made} == {Outcome.OK}
    assert [at for at, _ in start.said] == [10, 20]


def test_a_service_that_asks_for_a_day_is_left_alone_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reply = error(429, headers={"retry-after": "86400"})
    start = Start(monkeypatch, lambda n: after(0.5, reply)).drive()
    assert re.match(
        r"Tested: 127\.0\.0\.1:9 asks to be left alone for 24 h \(HTTP 429: it broke\)\. "
        r"The answers so far are kept: run the same command again to go on",
        start.error,
    )
    assert (len(start.service.begun), start.service.seconds, start.made) == (1, 0.5, [])


def test_a_service_that_asks_to_wait_is_obeyed_and_the_user_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reply = error(503, headers={"retry-after": "100"})
    start = Start(monkeypatch, lambda n: after(1.0, reply if n == 1 else None)).drive()
    assert len(start.made) == 24
    assert start.service.begun[:2] == [0.0, 101.0]
    assert start.said[0][0] == 10
    assert "HTTP 503: it broke; it asks to wait 100 s" in start.said[0][1]


@pytest.mark.parametrize("wait", [40, 70])
def test_what_it_asks_for_in_all_is_bounded(monkeypatch: pytest.MonkeyPatch, wait: int) -> None:
    reply = error(429, headers={"retry-after": str(wait)})
    patience = Patience(attempts=99)
    start = Start(monkeypatch, lambda n: after(0.0, reply), patience=patience).drive()
    # The wait that would have ended after five minutes was not begun.
    assert start.service.seconds == 300 - (300 % wait or wait)
    assert f"asks to be left alone for {wait} s and has not answered for 5 min (" in start.error


def test_a_port_where_nothing_listens_stops_the_run_within_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = Start(monkeypatch, lambda n: refuse, concurrency=64).drive()
    assert start.said == [
        (0.0, "Tested: 127.0.0.1:9 can't be reached: nothing listens there. Trying again.")
    ]
    assert re.match(
        r"Tested: 127\.0\.0\.1:9 can't be reached: nothing listens there\. Check that the server "
        r"runs, the network, and base_url in models\.yml\.",
        start.error,
    )
    assert start.service.seconds <= 10
    assert 3 <= len(start.service.begun) <= 5
    assert start.service.most_flying == 1
    assert start.made == []


def test_a_server_that_is_just_starting_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Start(monkeypatch, lambda n: refuse if n <= 2 else after(1.0)).drive()
    assert start.error == ""
    assert [p.outcome for p in start.made] == [Outcome.OK] * 24
    assert len(start.said) == 1


def test_a_server_that_is_away_for_a_while_costs_no_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone: list[float] = []

    def handler(number: int) -> Handler:
        now = start.service.begun[-1]
        return refuse if 5 <= now < 95 else after(1.0)

    start = Start(monkeypatch, handler, concurrency=4)
    start.drive()
    # Ninety seconds are more than six attempts take, and no turn has failed.
    assert [p.outcome for p in start.made] == [Outcome.OK] * 24
    gone = [at for at in start.service.begun if 5 <= at < 95]
    # 1, 2, 4, ... apart, and those that were under way together counted as one.
    assert len(gone) <= 4 * 8
    assert start.service.seconds < 2 * 95


def test_a_run_against_a_closed_port_says_so_and_records_no_failure(tmp_path: Path) -> None:
    with FaultServer({}) as server:
        url = server.url
    for engine in ("openai", "anthropic"):
        model = make_model(engine, url)  # type: ignore[arg-type]
        out = tmp_path / f"{engine}.jsonl"
        told: list[str] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("cradle_lib.detection.api.client.Patience.of", lambda _: HURRY)
            with pytest.raises(EngineError, match="can't be reached: nothing listens there"):
                run(model, HELLO, out=out, options=Options(notice=told.append))
        assert read_journal(out)[1] == []


def test_a_second_ctrl_c_gives_up_the_calls_in_flight() -> None:
    """The first waits for them, which takes as long as a server that hangs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    told: list[str] = []
    made: list[Prediction] = []
    lost: list[Prediction] = []

    def interrupt() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def reply(attempt: int) -> Any:
        if attempt < 6:
            return chat()
        interrupt()
        return None

    def tell(sentence: str) -> None:
        told.append(sentence)
        interrupt()

    try:
        with FaultServer({"hang": reply}) as server:
            engine: Remote = make_remote(
                make_model("openai", f"{server.url}/hang"), concurrency=1, notice=tell
            )
            engine.lost = lost.append
            with pytest.raises(KeyboardInterrupt):
                engine.answer_all(sessions(long_corpus(4, 3)), made.append)
            assert server.calls["hang"] == 7
    finally:
        signal.signal(signal.SIGINT, before)
    assert told[0].startswith("Interrupted: waiting for the calls in flight. Run the same command")
    assert len(made) == 6
    assert [p.reason for p in lost] == ["given up"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(9.6, "10 s"), (119, "119 s"), (300, "5 min"), (3600, "60 min"), (86400, "24 h")],
)
def test_times_are_said_for_people(seconds: float, words: str) -> None:
    assert span(seconds) == words
