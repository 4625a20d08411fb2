"""Concurrent calls: no answer is lost or requested twice, and every wait is bounded."""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cradle_engines.api.dispatch import RetryPolicy
from cradle_lib.detection import Outcome, Prediction, read_journal
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError

from ...detection.dialogues import make_corpus
from .fault_server import FaultServer, Reply, as_json, chat, error, message
from .services import (
    GOOD,
    NO_WAIT,
    NOWHERE,
    SDKS,
    FakeService,
    Handler,
    ServiceRun,
    after,
    long_corpus,
    make_model,
    make_remote,
    prompt_of,
    response,
    sessions,
)

pytestmark = pytest.mark.usefixtures("api")


async def hang(request: httpx2.Request) -> httpx2.Response:
    await asyncio.sleep(1e9)
    raise AssertionError


async def refuse(request: httpx2.Request) -> httpx2.Response:
    raise httpx2.ConnectError("no", request=request) from aiohttp.ConnectionTimeoutError("refused")


# ---- How many calls, and when --------------------------------------------------------


def test_the_first_call_is_alone_and_concurrency_is_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = ServiceRun(monkeypatch, lambda _: after(1.0), dialogues=10, turns=3, concurrency=5)
    assert start.service.most_in_flight == 5
    at = Counter(start.service.call_times)
    assert [at[0.0], at[1.0], at[2.0], at[3.0]] == [1, 5, 5, 5]


def test_an_overloaded_service_answers_every_question(monkeypatch: pytest.MonkeyPatch) -> None:
    capacity = 8

    def handler(service: FakeService) -> Handler:
        is_overloaded = service.in_flight > capacity
        return after(0.01, error(529, type="overloaded_error")) if is_overloaded else after(1.0)

    start = ServiceRun(monkeypatch, handler, dialogues=40, turns=5, concurrency=40)
    # With a fixed number of calls, up to a tenth of the questions fail.
    assert Counter(p.outcome for p in start.made) == {Outcome.OK: 200}
    assert len(start.service.call_times) < 1.3 * 200
    assert 200 / capacity <= start.service.seconds <= 1.5 * 200 / capacity


# ---- Waits are bounded and reported --------------------------------------------------


def test_a_server_that_never_answers_is_reported_after_10_s_and_stops_the_run_after_300_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = ServiceRun(monkeypatch, lambda _: hang)
    assert [at for at, _ in start.notices] == [10, 20, 40, 80, 160]
    assert start.notices[0][1] == (
        "Tested: no answer from 127.0.0.1:9 for 10 s: it has not replied. "
        "The run stops after 300 s without one."
    )
    assert re.match(
        r"Tested: no answer from 127\.0\.0\.1:9 for 300 s \(no answer within 120 s\)\. Check "
        r"whether the service works\. The answers so far are kept: run the same command",
        start.error,
    )
    assert (start.service.seconds, start.made) == (300, [])
    # Two calls reached their deadlines, at 120 and about 241 s; a third was in flight at 300 s.
    assert len(start.service.call_times) == 3


def test_an_unreachable_port_stops_the_run_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    start = ServiceRun(monkeypatch, lambda _: refuse, concurrency=64)
    unreachable = "Tested: 127.0.0.1:9 can't be reached: refused."
    assert start.error.startswith(
        f"{unreachable} Check that the server runs, the network, and base_url"
    )
    assert start.service.seconds <= 10
    assert (start.service.most_in_flight, start.made) == (1, [])


def test_no_question_fails_in_90_s_without_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def handler(service: FakeService) -> Handler:
        return refuse if 5 <= service.call_times[-1] < 95 else after(1.0)

    start = ServiceRun(monkeypatch, handler, concurrency=4)
    # Six attempts take less than 90 s, so that without a pause questions would fail.
    assert [p.outcome for p in start.made] == [Outcome.OK] * 24
    assert start.service.seconds < 200


# ---- Stopping ------------------------------------------------------------------------


def test_a_service_that_keeps_failing_stops_the_run_and_a_later_start_resumes(
    service: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = make_corpus([[("User", f"turn {i}", "none") for i in range(8)]])
    down = True
    name = service.add(lambda n: error(500) if down and n >= 2 else chat())
    model = make_model("openai", f"{service.url}/{name}")
    monkeypatch.setattr(RetryPolicy, "of", classmethod(lambda *_: NO_WAIT))
    with pytest.raises(EngineError, match=r"4 questions in a row failed \(HTTP 500"):
        run(model, long, out=tmp_path)
    down, calls = False, service.calls[name]
    predictions = read_journal(run(model, long, out=tmp_path))[1]
    # Two turns had been answered before; the failed ones were `none` in the history, as now.
    assert service.calls[name] - calls == 6
    assert [p.outcome for p in predictions] == [Outcome.OK] * 8


@pytest.fixture
def interrupt() -> Iterator[Callable[[], None]]:
    """Sends Ctrl-C as a terminal does, even if the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    main = threading.main_thread().ident or 0
    yield lambda: signal.pthread_kill(main, signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_a_second_ctrl_c_cancels_calls(service: FaultServer, interrupt: Callable[[], None]) -> None:
    made: list[Prediction] = []
    lost: list[Prediction] = []

    def reply(attempt: int) -> Reply | None:
        if attempt < 6:
            return chat()
        interrupt()
        return None

    name = service.add(reply)
    model = make_model("openai", f"{service.url}/{name}")
    engine = make_remote(model, concurrency=1, notice=lambda _: interrupt())
    engine.on_lost_call = lost.append
    with pytest.raises(KeyboardInterrupt):
        engine.answer_all(sessions(long_corpus(4, 3)), made.append)
    assert (service.calls[name], len(made)) == (7, 6)
    assert [p.reason for p in lost] == ["given up"]


# ---- Any sequence of faults and answers ----------------------------------------------

MOVES: dict[str, Callable[[str], Reply | str]] = {
    "answer": lambda engine: GOOD[engine](),
    "tag": lambda engine: (
        chat(message={"content": "alert_past"}) if engine == "openai" else message("alert_past")
    ),
    "nothing": lambda engine: as_json({}),
    "429": lambda engine: error(429),
    "429-wait": lambda engine: error(429, headers={"retry-after": "7"}),
    "500": lambda engine: error(500),
    "temperature": lambda engine: error(400, message="temperature is deprecated"),
    "refusal": lambda engine: error(400, code="content_filter"),
    "wrong key": lambda engine: error(401),
    "reset": lambda engine: "reset",
    "away": lambda engine: "away",
    "hang": lambda engine: "hang",
}


@given(
    engine=st.sampled_from(SDKS),
    moves=st.lists(st.sampled_from(sorted(MOVES)), max_size=60),
    concurrency=st.integers(1, 5),
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    seed=st.integers(0, 9),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_after_any_faults_every_turn_is_answered_once(
    engine: str,
    moves: list[str],
    concurrency: int,
    shape: list[int],
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    corpus = make_corpus(
        [[("User", f"turn {i}.{j}", "none") for j in range(n)] for i, n in enumerate(shape)]
    )
    script, delays = iter(moves), random.Random(seed)
    journal: dict[tuple[str, int], Prediction] = {}

    def answered() -> set[str]:
        return {p.key for p in journal.values() if p.outcome is not Outcome.FAILED}

    async def handler(request: httpx2.Request) -> httpx2.Response:
        assert hashlib.sha256(prompt_of(request).encode()).hexdigest()[:16] not in answered()
        move = MOVES[next(script, "answer")](engine)
        await asyncio.sleep(delays.choice([0.0, 0.1, 3.0]))
        if isinstance(move, tuple):
            return response(move)
        if move == "reset":
            raise httpx2.ReadError("reset", request=request)
        return await (refuse if move == "away" else hang)(request)

    policy = RetryPolicy(attempts=2, deadline=50.0, base=1.0, cap=5.0, failures=3)
    for _ in range(len(moves) + 2):
        service, here = FakeService(monkeypatch, handler), list[Prediction]()
        remote = make_remote(make_model(engine, NOWHERE, temperature=0.0), policy, concurrency)
        try:
            service.run_engine(remote, sessions(corpus, list(journal.values())), here.append)
            stopped = False
        except EngineError:
            stopped = True
        places = [(p.dialogue, p.turn) for p in here]
        assert len(set(places)) == len(places)
        assert all(p.reason for p in here if p.outcome is Outcome.FAILED)
        journal |= dict(zip(places, here, strict=True))
        # Unless the run was stopped, it has a line for every turn, answered or failed.
        assert stopped or len(journal) == sum(shape)
        assert (service.most_in_flight <= concurrency, service.in_flight) == (True, 0)
        if len(answered()) == sum(shape):
            return
    raise AssertionError("turns are missing")
