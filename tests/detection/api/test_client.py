"""Many dialogues at once against one service: nothing lost, doubled, or asked for in vain."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cradle_lib.detection import Options, Outcome, Prediction, Session, read_journal
from cradle_lib.detection.api.dispatch import Patience
from cradle_lib.detection.run import run
from cradle_lib.errors import EngineError

from ..dialogues import make_corpus
from .fault_server import FaultServer, Reply, as_json, chat, error, message
from .services import (
    GOOD,
    HURRY,
    NOWHERE,
    SDKS,
    Imagined,
    long_corpus,
    make_model,
    make_remote,
    prompt_of,
    response,
    sessions,
)

pytestmark = pytest.mark.usefixtures("api")


@pytest.mark.parametrize("engine", SDKS)
def test_a_run_finds_what_a_service_bears(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    capacity, refused = 8, 0

    async def handler(request: httpx2.Request) -> httpx2.Response:
        nonlocal refused
        if service.flying > capacity:
            refused += 1
            await asyncio.sleep(0.01)
            return response(error(529, type="overloaded_error"))
        await asyncio.sleep(1.0)
        return response(GOOD[engine]())

    service = Imagined(monkeypatch, handler)
    many, made = long_corpus(60, 8), []
    under_test = make_remote(make_model(engine, NOWHERE), None, concurrency=40)
    service.drive(under_test, sessions(many), made.append)
    assert Counter(p.outcome for p in made) == {Outcome.OK: 480}
    assert refused < 0.1 * 480
    # 480 answers of 1 s, 8 at once, take 60 s at best; a saw from half to full has 3/4 of it.
    assert 60 <= service.seconds <= 100


def test_no_more_calls_fly_than_the_limit_and_the_first_one_flies_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def handler(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(1.0)
        return response(chat())

    service = Imagined(monkeypatch, handler)
    under_test = make_remote(make_model("openai", NOWHERE), None, concurrency=5)
    service.drive(under_test, sessions(long_corpus(10, 3)), lambda _: None)
    assert service.most_flying == 5
    at = Counter(service.begun)
    assert [at[0.0], at[1.0], at[2.0], at[3.0]] == [1, 5, 5, 5]


def test_when_a_service_asks_to_wait_nobody_asks_until_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def handler(request: httpx2.Request) -> httpx2.Response:
        number = len(service.begun)
        await asyncio.sleep(1.0)
        if number == 20:
            return response(error(429, headers={"retry-after": "30"}))
        return response(chat())

    service = Imagined(monkeypatch, handler)
    made: list[Prediction] = []
    under_test = make_remote(make_model("openai", NOWHERE), None, concurrency=4)
    service.drive(under_test, sessions(long_corpus(10, 4)), made.append)
    assert [p.outcome for p in made] == [Outcome.OK] * 40
    refused_at = sorted(service.begun)[19] + 1.0
    assert not [t for t in service.begun if refused_at < t < refused_at + 30]
    assert refused_at + 30 in service.begun


def test_older_dialogues_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    async def handler(request: httpx2.Request) -> httpx2.Response:
        order.append(prompt_of(request).rsplit(" ", 1)[1])
        # Never room for a second call.
        if service.flying > 1:
            return response(error(503))
        await asyncio.sleep(1.0)
        return response(chat())

    service = Imagined(monkeypatch, handler)
    patience = Patience(attempts=100, base=0.0)
    under_test = make_remote(make_model("openai", NOWHERE), patience, concurrency=3)
    service.drive(under_test, sessions(long_corpus(4, 3)), lambda _: None)
    last = [max(i for i, asked in enumerate(order) if asked == f"{d}.2") for d in range(4)]
    assert last == sorted(last)
    # The youngest has not begun when the oldest has ended.
    assert order.index("3.0") > last[0]
    assert order.index("2.1") > last[0]


# ---- Stopping ------------------------------------------------------------------------


@pytest.mark.parametrize("thread", [False, True], ids=["from emit", "from another thread"])
def test_a_stopped_run_keeps_the_answers_in_flight_and_asks_no_more(
    tmp_path: Path, thread: bool
) -> None:
    many = long_corpus(20, 5)
    made: list[Prediction] = []
    with FaultServer({"ok": lambda n: chat()}) as server:
        engine = make_remote(make_model("openai", f"{server.url}/ok"), concurrency=4)

        def emit(prediction: Prediction) -> None:
            made.append(prediction)
            if len(made) == 30:
                stop = threading.Thread(target=engine.stop, args=("the money is spent",))
                if thread:
                    stop.start()
                    stop.join()
                else:
                    engine.stop("the money is spent")
                    engine.stop("a later reason")

        match = r"^Tested: the money is spent\. The answers so far are kept: run the same command"
        with pytest.raises(EngineError, match=match):
            engine.answer_all(sessions(many), emit)
        assert server.calls["ok"] == len(made)
        assert 30 <= len(made) <= 33
        engine.answer_all(sessions(many, made), made.append)
        # A stopped engine can go on: nothing is asked twice.
        assert server.calls["ok"] == len(made) == 100
    assert len({(p.dialogue, p.turn) for p in made}) == 100


def test_a_service_that_keeps_failing_stops_the_run_and_a_later_start_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = make_corpus([[("User", f"turn {i}", "none") for i in range(8)]])
    down = True

    def reply(attempt: int) -> Any:
        return error(503) if down and attempt >= 2 else chat()

    with FaultServer({"flaky": reply}) as server:
        model = make_model("openai", f"{server.url}/flaky")
        monkeypatch.setattr("cradle_lib.detection.api.client.Patience.of", lambda _: HURRY)
        with pytest.raises(EngineError, match=r"4 questions in a row failed \(HTTP 503"):
            run(model, long, out=tmp_path)
        down = False
        calls = server.calls["flaky"]
        predictions = read_journal(run(model, long, out=tmp_path))[1]
        # Two turns were answered at first; the failed ones showed as none, as they do now.
        assert server.calls["flaky"] - calls == 6
    assert [p.outcome for p in predictions] == [Outcome.OK] * 8


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C as in a terminal, also where the tests were started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_keeps_the_answers_in_flight(tmp_path: Path) -> None:
    long = long_corpus(10, 9)
    told: list[str] = []

    def reply(attempt: int) -> Any:
        if attempt == 11:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return chat()

    options = Options(concurrency=2, notice=told.append)
    with FaultServer({"stop": reply}) as server:
        model = make_model("openai", f"{server.url}/stop")
        with pytest.raises(KeyboardInterrupt):
            run(model, long, out=tmp_path, options=options)
        asked = server.calls["stop"]
        path = run(model, long, out=tmp_path, options=options)
        # Every answer that was given is in the journal: none is asked for twice.
        assert server.calls["stop"] == 90
    assert 12 <= asked < 90
    assert len(read_journal(path)[1]) == 90
    assert [sentence.partition(".")[0] for sentence in told] == [
        "Interrupted: waiting for the calls in flight"
    ]


BARE = """
import importlib.util, sys

absent = {"openai", "anthropic", "aiohttp", "httpx2"}

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
found = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name in absent else found(name)
from cradle_lib.cli import main

sys.argv = ["cradle", "infer", "--model", "gpt-5.1", "--set", "limit=1"]
sys.exit(main())
"""


def test_without_the_sdks_packages_a_command_says_what_to_install(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BARE], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode != 0
    assert "needs the package openai, which is not installed" in done.stderr
    assert "-e '.[api]'" in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


def test_an_error_of_ours_ends_the_run_and_keeps_what_was_in_flight() -> None:
    made: list[Prediction] = []

    def emit(prediction: Prediction) -> None:
        made.append(prediction)
        if len(made) == 10:
            raise OSError(28, "No space left on device")

    with FaultServer({"ok": lambda n: chat()}) as server:
        engine = make_remote(make_model("openai", f"{server.url}/ok"), concurrency=4)
        with pytest.raises(OSError, match="No space left"):
            engine.answer_all(sessions(long_corpus(10, 5)), emit)
        assert server.calls["ok"] == len(made)


# ---- Any sequence of faults and answers ----------------------------------------------

MOVES: dict[str, Callable[[str], Reply | str]] = {
    "answer": lambda engine: GOOD[engine](),
    "429": lambda engine: error(429),
    "429-wait": lambda engine: error(429, headers={"retry-after": "7"}),
    "503": lambda engine: error(503),
    "529": lambda engine: error(529),
    "500": lambda engine: error(500),
    "400": lambda engine: error(400),
    "temperature": lambda engine: error(400, message="temperature is deprecated"),
    "html": lambda engine: (200, {"content-type": "text/html"}, b"<html>"),
    "broken": lambda engine: (200, {"content-type": "application/json"}, b'{"id'),
    "nothing": lambda engine: as_json({}),
    "refusal": lambda engine: error(400, code="content_filter"),
    "wrong key": lambda engine: error(401),
    "no credit": lambda engine: error(429, type="insufficient_quota"),
    "reset": lambda engine: "reset",
    "hang": lambda engine: "hang",
    "tag": lambda engine: (
        chat(message={"content": "alert_past"}) if engine == "openai" else message("alert_past")
    ),
}


@given(
    engine=st.sampled_from(SDKS),
    moves=st.lists(st.sampled_from(sorted(MOVES)), max_size=60),
    concurrency=st.integers(1, 5),
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    seed=st.integers(0, 9),
)
@settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_after_any_faults_every_turn_is_there_once_and_none_was_asked_for_twice(
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
    written: dict[str, Prediction] = {}
    twice: list[str] = []

    async def handler(request: httpx2.Request) -> httpx2.Response:
        text = prompt_of(request)
        if text in answered_texts:
            twice.append(text)
        move = MOVES[next(script, "answer")](engine)
        await asyncio.sleep(delays.choice([0.0, 0.1, 3.0]))
        if move == "reset":
            raise httpx2.ReadError("reset", request=request)
        if move == "hang":
            await asyncio.sleep(1e6)
        assert isinstance(move, tuple)
        return response(move)

    answered_texts: set[str] = set()
    journal: dict[tuple[str, int], Prediction] = {}
    for _ in range(len(moves) + 2):
        service = Imagined(monkeypatch, handler)
        now = sessions(corpus, list(journal.values()))
        asked_of = {s.dialogue.id: s for s in now}
        here: set[tuple[str, int]] = set()
        texts = {s.dialogue.id: s.prompt.text for s in now if s.prompt}

        def emit(
            p: Prediction,
            asked_of: dict[str, Session] = asked_of,
            here: set[tuple[str, int]] = here,
            texts: dict[str, str] = texts,
        ) -> None:
            # Once for each start, and never over an answer to the same question.
            assert (p.dialogue, p.turn) not in here
            here.add((p.dialogue, p.turn))
            assert p.key not in written
            if p.outcome is not Outcome.FAILED:
                written[p.key] = p
                answered_texts.add(texts[p.dialogue])
            else:
                assert p.reason
            journal[p.dialogue, p.turn] = p
            following = asked_of[p.dialogue].prompt
            texts[p.dialogue] = following.text if following else ""

        model = make_model(engine, NOWHERE, temperature=0.0)
        patience = Patience(attempts=2, deadline=50.0, base=1.0, cap=5.0, failures=3)
        try:
            service.drive(make_remote(model, patience, concurrency), now, emit)
        except EngineError:
            pass
        else:
            # A run that was not stopped has a line for every turn, answered or failed.
            assert len(journal) == sum(shape)
        assert service.most_flying <= concurrency
        assert service.flying == 0
        done = [p for p in journal.values() if p.outcome is not Outcome.FAILED]
        if len(done) == sum(shape):
            break
    assert twice == []
    assert len(done) == len(journal) == sum(shape)
