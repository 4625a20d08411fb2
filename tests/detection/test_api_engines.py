"""The API engines, against llama.cpp's real server and against one that misbehaves."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import (
    Engine,
    Model,
    Options,
    Outcome,
    Prediction,
    Session,
    make_engine,
    read_journal,
    run,
)
from cradle_lib.detection.engines.faults import fault_of_status
from cradle_lib.detection.engines.remote import Patience, Remote
from cradle_lib.detection.registry import Decoding, EngineName
from cradle_lib.detection.weights import gguf_file
from cradle_lib.errors import EngineError
from cradle_lib.prompts import parse_template

from .dialogues import make_corpus
from .fault_server import FaultServer, as_json, chat, error, message

KEY = "sk-planted-0123456789"
SDKS: list[EngineName] = ["openai", "anthropic"]
TEMPLATE = parse_template("short", "Label.\n{history}\n{current_turn}")
# No waiting in tests; a call that hangs is given up soon.
HURRY = Patience(attempts=3, deadline=20.0, base=0.0, cap=0.0, failures=4)


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "short.txt").write_text(TEMPLATE.text)
    monkeypatch.setattr(paths, "PROMPTS", folder)
    monkeypatch.setenv("TEST_KEY", KEY)
    # Nothing but the registry decides where text goes.
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def make_model(engine: EngineName, url: str, **decoding: Any) -> Model:
    return Model.model_validate(
        {
            "id": f"m-{engine}",
            "name": "Tested",
            "group": "proprietary",
            "engine": engine,
            "weights": "smollm2-135m",
            "prompt": "short",
            "decoding": Decoding(**({"max_new_tokens": 8} | decoding)),
            "base_url": f"{url}/v1" if engine == "openai" else url,
            "key": {"variable": "TEST_KEY"},
        }
    )


# ---- A real server -------------------------------------------------------------------


def start_server(*, cache: bool) -> tuple[Any, str]:
    import xllamacpp

    try:
        gguf = gguf_file()
    except EngineError as trouble:
        if "can't download" not in str(trouble):
            raise
        pytest.skip(f"no network and no cached weights: {trouble}")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(gguf)
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [KEY]
    parameters.n_ctx = 512
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.cache_ram_mib = 0
    parameters.cache_prompt = cache
    parameters.ui = False
    parameters.verbosity = -1
    running = xllamacpp.Server(parameters)
    return running, running.listening_address


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    # Without its cache: where a prompt is split between cached and new tokens changes
    # llama.cpp's rounding, and with it an answer now and then, even greedily.
    running, address = start_server(cache=False)
    yield address
    del running


@pytest.fixture
def caching_server() -> Iterator[str]:
    running, address = start_server(cache=True)
    yield address
    del running


def test_a_real_server_answers_alike_through_both_sdks_at_any_concurrency(
    server: str, corpus: Corpus, tmp_path: Path
) -> None:
    made = []
    for engine in SDKS:
        for concurrency in (1, 3):
            model = make_model(engine, server, temperature=0.0)
            out, options = tmp_path / str(concurrency), Options(concurrency=concurrency)
            path = run(model, corpus, out=out, options=options)
            assert KEY not in path.read_text()
            made.append(read_journal(path)[1])
    for predictions in made:
        assert [(p.key, p.answer, p.tokens_in) for p in predictions] == [
            (p.key, p.answer, p.tokens_in) for p in made[0]
        ]
        for prediction in predictions:
            assert prediction.answer
            assert prediction.outcome in (Outcome.OK, Outcome.UNPARSED)
            assert prediction.tokens_in is not None
            assert 20 < prediction.tokens_in < 200
            assert prediction.tokens_out is not None
            assert 0 < prediction.tokens_out <= 8


def test_tokens_that_a_real_server_had_cached_are_counted(
    caching_server: str, corpus: Corpus, tmp_path: Path
) -> None:
    for engine in SDKS:
        path = run(make_model(engine, caching_server, temperature=0.0), corpus, out=tmp_path)
        last = read_journal(path)[1][-1]
        assert last.tokens_cached
        assert last.tokens_in
        # The chat template's beginning is the same in every prompt.
        assert 0 < last.tokens_cached < last.tokens_in


@pytest.mark.parametrize("engine", SDKS)
def test_a_real_server_refuses_a_wrong_key_and_an_over_long_prompt(
    server: str, corpus: Corpus, tmp_path: Path, engine: EngineName, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = make_corpus([[("User", "word " * 800, "none")]], name="long")
    found = read_journal(run(make_model(engine, server), long, out=tmp_path))[1]
    assert [p.outcome for p in found] == [Outcome.FAILED]
    assert found[0].reason
    assert found[0].reason.startswith("HTTP 400")
    monkeypatch.setenv("TEST_KEY", "sk-wrong")
    refused = r"Tested: the key was not accepted \(HTTP 401\)"
    with pytest.raises(EngineError, match=refused) as fault:
        run(make_model(engine, server), corpus, out=tmp_path)
    assert "sk-wrong" not in str(fault.value)


# ---- A server that misbehaves --------------------------------------------------------

HTML = (200, {"content-type": "text/html"}, b"<html>gateway</html>")
BROKEN = (200, {"content-type": "application/json"}, b'{"id": ')
TRUNCATED = (200, {"content-type": "application/json", "content-length": "900"}, b'{"id": ')
LEAK = f"bad {KEY} value"
DATE = format_datetime(datetime.now(UTC) + timedelta(seconds=1), usegmt=True)

# Faults that both SDKs meet: reply by attempt, outcome, reason, number of calls.
COMMON: dict[str, tuple[Any, Outcome, str, int]] = {
    "429": (lambda n: error(429), Outcome.FAILED, "HTTP 429", 3),
    "408": (lambda n: error(408), Outcome.FAILED, "HTTP 408", 3),
    "409": (lambda n: error(409), Outcome.FAILED, "HTTP 409", 3),
    "500": (lambda n: error(500), Outcome.FAILED, "HTTP 500", 3),
    "502": (lambda n: (502, {"content-type": "text/html"}, b"<p>"), Outcome.FAILED, "HTTP 502", 3),
    "503": (lambda n: error(503), Outcome.FAILED, "HTTP 503", 3),
    "529": (lambda n: error(529), Outcome.FAILED, "HTTP 529", 3),
    "no-retry": (
        lambda n: error(500, headers={"x-should-retry": "false"}),
        Outcome.FAILED,
        "HTTP 500",
        1,
    ),
    "400": (lambda n: error(400, message=LEAK), Outcome.FAILED, r"HTTP 400.*\[key\] value", 1),
    "413": (lambda n: error(413), Outcome.FAILED, "HTTP 413", 1),
    "422": (lambda n: error(422), Outcome.FAILED, "HTTP 422", 1),
    "reset": (lambda n: b"", Outcome.FAILED, "no connection", 3),
    "truncated": (lambda n: TRUNCATED, Outcome.FAILED, "no connection", 3),
    "broken": (lambda n: BROKEN, Outcome.FAILED, "can't be read", 1),
    "empty": (
        lambda n: (200, {"content-type": "application/json"}, b""),
        Outcome.FAILED,
        "can't be read",
        1,
    ),
    "html": (lambda n: HTML, Outcome.FAILED, "is not JSON of", 1),
    "error-in-200": (lambda n: as_json({"error": {"message": "x"}}), Outcome.FAILED, "holds no", 1),
}
OPENAI: dict[str, tuple[Any, Outcome, str, int]] = {
    "filter": (
        lambda n: chat(finish_reason="content_filter", message={"content": None}),
        Outcome.REFUSED,
        "content filter",
        1,
    ),
    "refusal": (
        lambda n: chat(message={"content": None, "refusal": "I can't\nhelp."}),
        Outcome.REFUSED,
        "I can't help.",
        1,
    ),
    "filter-400": (
        lambda n: as_json({"error": {"message": "m", "code": "content_filter"}}, 400),
        Outcome.REFUSED,
        "HTTP 400",
        1,
    ),
    "cut": (
        lambda n: chat(finish_reason="length", message={"content": "alert_past"}),
        Outcome.UNPARSED,
        "cut at 8 tokens",
        1,
    ),
    "blank": (lambda n: chat(message={"content": ""}), Outcome.UNPARSED, "empty answer", 1),
    "gemini-list": (lambda n: as_json([{"error": {"code": 400}}], 400), Outcome.FAILED, "400", 1),
}
ANTHROPIC: dict[str, tuple[Any, Outcome, str, int]] = {
    "refusal": (
        lambda n: message(
            None,
            stop_reason="refusal",
            stop_details={"type": "refusal", "category": None, "explanation": "Not this."},
        ),
        Outcome.REFUSED,
        "Not this.",
        1,
    ),
    "cut": (
        lambda n: message("alert_past", stop_reason="max_tokens"),
        Outcome.UNPARSED,
        "cut at 8 tokens",
        1,
    ),
    "blank": (lambda n: message(None), Outcome.UNPARSED, "empty answer", 1),
}
CASES = [
    *(("openai", name, *case) for name, case in (COMMON | OPENAI).items()),
    *(("anthropic", name, *case) for name, case in (COMMON | ANTHROPIC).items()),
]
HELLO = make_corpus([[("User", "Hello.", "none")]])


def engine_for(model: Model, patience: Patience = HURRY) -> Engine:
    engine = make_engine(model, HELLO, Options(concurrency=2))
    assert isinstance(engine, Remote)
    engine.patience = patience
    return engine


def ask(model: Model, patience: Patience = HURRY) -> Prediction:
    found: list[Prediction] = []
    engine_for(model, patience).answer_all([Session(HELLO.dialogues[0], TEMPLATE)], found.append)
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("engine", "name", "reply", "outcome", "reason", "calls"),
    CASES,
    ids=[f"{case[0]}-{case[1]}" for case in CASES],
)
def test_every_fault_lands_in_one_outcome_with_its_reason(
    engine: EngineName, name: str, reply: Any, outcome: Outcome, reason: str, calls: int
) -> None:
    with FaultServer({name: reply}) as server:
        found = ask(make_model(engine, f"{server.url}/{name}"))
        assert server.calls[name] == calls
    assert (found.outcome, found.mask) == (outcome, 0)
    assert found.reason is not None
    assert re.search(reason, found.reason), found.reason
    assert KEY not in found.reason


GOOD = {"openai": chat, "anthropic": message}
PASSING = {
    "rate-limit": error(429, headers={"retry-after": "100"}),
    "milliseconds": error(429, headers={"retry-after-ms": "100000"}),
    "date": error(503, headers={"retry-after": DATE}),
    "reset": b"",
}


@pytest.mark.parametrize("engine", SDKS)
@pytest.mark.parametrize("name", PASSING)
def test_a_passing_fault_is_asked_again_and_waits_have_a_cap(engine: EngineName, name: str) -> None:
    def reply(attempt: int) -> Any:
        return PASSING[name] if attempt == 0 else GOOD[engine]()

    with FaultServer({name: reply}) as server:
        found = ask(make_model(engine, f"{server.url}/{name}"))
        assert server.calls[name] == 2
    assert found.outcome is Outcome.OK
    assert (found.tokens_in, found.tokens_cached, found.tokens_out) == (9, 4, 2)


@pytest.mark.parametrize("engine", SDKS)
def test_a_call_that_hangs_ends_at_the_deadline(engine: EngineName) -> None:
    patience = Patience(attempts=2, deadline=0.2, base=0.0, cap=0.0)
    with FaultServer({"hang": lambda n: None}) as server:
        found = ask(make_model(engine, f"{server.url}/hang"), patience)
        assert server.calls["hang"] == 2
    assert found.outcome is Outcome.FAILED
    assert found.reason
    assert "0.2 s" in found.reason or "Timeout" in found.reason


@pytest.mark.parametrize("engine", SDKS)
def test_the_request_holds_the_sessions_text_and_the_papers_settings(engine: EngineName) -> None:
    with FaultServer({"ok": lambda n: GOOD[engine]()}) as server:
        ask(make_model(engine, f"{server.url}/ok", temperature=0.0))
        ask(make_model(engine, f"{server.url}/ok"))
        first, second = server.seen
        headers = server.headers[0]
    assert first == {
        "model": "smollm2-135m",
        "messages": [{"role": "user", "content": "Label.\nUser: Hello."}],
        "max_tokens": 8,
        "temperature": 0.0,
    }
    assert "temperature" not in second
    assert KEY in headers.get("authorization", "") + headers.get("x-api-key", "")
    if engine == "anthropic":
        assert headers["anthropic-version"] == "2023-06-01"


@pytest.mark.parametrize("engine", SDKS)
@pytest.mark.parametrize(
    ("status", "fields", "why"),
    [
        (401, {}, "the key was not accepted"),
        (403, {}, "the key may not use this model"),
        (404, {}, "there is no such model"),
        (429, {"type": "insufficient_quota", "code": "insufficient_quota"}, "no credit"),
    ],
)
def test_what_cannot_succeed_stops_the_run_at_once(
    engine: EngineName, status: int, fields: dict[str, str], why: str
) -> None:
    with FaultServer({"no": lambda n: error(status, message=LEAK, **fields)}) as server:
        model = make_model(engine, f"{server.url}/no")
        with pytest.raises(EngineError, match=rf"Tested: .*{why}.*run the same command") as fault:
            ask(model)
        assert server.calls["no"] == 1
    assert KEY not in str(fault.value)


def test_a_service_that_keeps_failing_stops_the_run_and_a_later_start_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = make_corpus([[("User", f"turn {i}", "none") for i in range(8)]])
    down = True

    def reply(attempt: int) -> Any:
        return error(503) if down and attempt >= 2 else chat()

    with FaultServer({"flaky": reply}) as server:
        model = make_model("openai", f"{server.url}/flaky")
        monkeypatch.setattr("cradle_lib.detection.engines.remote.Patience", lambda: HURRY)
        with pytest.raises(EngineError, match=r"4 questions in a row failed \(HTTP 503"):
            run(model, long, out=tmp_path)
        down = False
        calls = server.calls["flaky"]
        predictions = read_journal(run(model, long, out=tmp_path))[1]
        # Two turns were answered at first; the failed ones showed as none, as they do now.
        assert server.calls["flaky"] - calls == 6
    assert [p.outcome for p in predictions] == [Outcome.OK] * 8


def test_ctrl_c_keeps_the_answers_in_flight(tmp_path: Path) -> None:
    long = make_corpus([[("User", f"{i} {j}", "none") for j in range(20)] for i in range(15)])

    def reply(attempt: int) -> Any:
        if attempt == 1:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return chat()

    with FaultServer({"stop": reply}) as server:
        model = make_model("openai", f"{server.url}/stop")
        with pytest.raises(KeyboardInterrupt):
            run(model, long, out=tmp_path, options=Options(concurrency=1))
        asked = server.calls["stop"]
        path = run(model, long, out=tmp_path, options=Options(concurrency=1))
        # Every answer that was given is in the journal: none is asked for twice.
        assert server.calls["stop"] == 300
    assert 2 <= asked < 300
    assert len(read_journal(path)[1]) == 300


def test_a_missing_sdk_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EngineError, match=r"package anthropic.*-e '\.\[api\]'"):
        engine_for(make_model("anthropic", "http://127.0.0.1:9"))


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_a_server_asks_for_is_read(
    headers: dict[str, str], wait: float | None
) -> None:
    assert fault_of_status(429, headers, None, None, "slow down").wait == wait
