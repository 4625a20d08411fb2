"""Whatever a service does lands in one outcome, after a known number of calls and in a known time.

The rows are those that were seen with the official SDKs. Streams are not among them: no
engine asks for one.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.detection import Outcome, Prediction, Session
from cradle_lib.detection.api.anthropic_messages import AnthropicMessages
from cradle_lib.detection.api.dispatch import Patience
from cradle_lib.detection.api.faults import (
    asked_wait,
    error_in,
    fault_in_reply,
    fault_of_status,
    service_faults,
)
from cradle_lib.detection.api.openai_chat import OpenAIChat
from cradle_lib.detection.api.replies import LARGEST_REPLY
from cradle_lib.errors import EngineError

from .fault_server import DRIBBLE, FaultServer, Reply, as_json, chat, error, message
from .services import (
    GOOD,
    HELLO,
    KEY,
    NOWHERE,
    SDKS,
    TEMPLATE,
    Imagined,
    ask,
    make_model,
    make_remote,
    response,
)

pytestmark = pytest.mark.usefixtures("api")

HTML = (200, {"content-type": "text/html"}, b"<html>gateway</html>")
BROKEN = (200, {"content-type": "application/json"}, b'{"id": ')
TRUNCATED = (200, {"content-type": "application/json", "content-length": "900"}, b'{"id": ')
NESTED = (200, {"content-type": "application/json"}, b"[" * 200_000)
LEAK = f"bad {KEY} value"
DATE = format_datetime(datetime.now(UTC) + timedelta(seconds=1), usegmt=True)
FAILED, REFUSED, UNPARSED = Outcome.FAILED, Outcome.REFUSED, Outcome.UNPARSED

Row = tuple[Reply | bytes, Outcome, str, int]
# Faults that both SDKs meet: reply, outcome, reason, number of calls if three are allowed.
COMMON: dict[str, Row] = {
    "429": (error(429), FAILED, "HTTP 429", 3),
    "429-wait": (error(429, headers={"retry-after": "0.02"}), FAILED, "HTTP 429", 3),
    "429-milliseconds": (error(429, headers={"retry-after-ms": "20"}), FAILED, "HTTP 429", 3),
    "429-date": (error(429, headers={"retry-after": DATE}), FAILED, "HTTP 429", 3),
    "408": (error(408), FAILED, "HTTP 408", 3),
    "409": (error(409), FAILED, "HTTP 409", 3),
    "500": (error(500), FAILED, "HTTP 500", 3),
    "502": ((502, {"content-type": "text/html"}, b"<p>"), FAILED, "HTTP 502", 3),
    "503": (error(503), FAILED, "HTTP 503", 3),
    "529": (error(529, type="overloaded_error"), FAILED, "HTTP 529", 3),
    "no-retry": (error(500, headers={"x-should-retry": "false"}), FAILED, "HTTP 500", 1),
    "400": (error(400, message=LEAK), FAILED, r"HTTP 400.*\[key\] value", 1),
    "400-long": (error(400, message="x" * 280 + KEY), FAILED, r"x\[key\]$", 1),
    "413": (error(413), FAILED, "HTTP 413", 1),
    "422": (error(422), FAILED, "HTTP 422", 1),
    "redirect": ((307, {"location": "/elsewhere/v1/x"}, b""), FAILED, "HTTP 307", 1),
    "reset": (b"", FAILED, "the connection broke", 3),
    "truncated": (TRUNCATED, FAILED, "the connection broke", 3),
    "broken": (BROKEN, FAILED, "can't be read", 1),
    "nested": (NESTED, FAILED, "can't be read", 1),
    "empty": ((200, {"content-type": "application/json"}, b""), FAILED, "can't be read", 1),
    "html": (HTML, FAILED, "is not JSON of", 1),
    "error-in-200": (as_json({"error": {"message": LEAK}}), FAILED, r"200.*: bad \[key\]", 3),
    "null": (as_json(None), FAILED, "is not JSON of", 1),
}
OPENAI: dict[str, Row] = {
    "filter": (
        chat(finish_reason="content_filter", message={"content": None}),
        REFUSED,
        "^content filter$",
        1,
    ),
    "gemini-filter": (
        chat(finish_reason="content_filter: PROHIBITED_CONTENT", message={"content": None}),
        REFUSED,
        "^content filter: PROHIBITED_CONTENT$",
        1,
    ),
    "refusal": (
        chat(message={"content": None, "refusal": "I can't\nhelp."}),
        REFUSED,
        r"^I can't help\.$",
        1,
    ),
    "filter-400": (error(400, code="content_filter"), REFUSED, "HTTP 400: it broke", 1),
    "no-choices": (as_json({"id": "c", "choices": []}), FAILED, "holds no choice", 1),
    "cut": (
        chat(finish_reason="length", message={"content": "alert_past"}),
        UNPARSED,
        "cut at 8 tokens",
        1,
    ),
    "blank": (chat(message={"content": ""}), UNPARSED, "empty answer", 1),
    "gemini-list": (
        as_json([{"error": {"code": 400, "message": "no"}}], 400),
        FAILED,
        "HTTP 400: no$",
        1,
    ),
}
ANTHROPIC: dict[str, Row] = {
    "refusal": (
        message(
            None,
            stop_reason="refusal",
            stop_details={"type": "refusal", "category": None, "explanation": "Not\nthis."},
        ),
        REFUSED,
        r"^Not this\.$",
        1,
    ),
    "bare-refusal": (message(None, stop_reason="refusal"), REFUSED, "^declined$", 1),
    "filter-400": (error(400, type="content_filter"), REFUSED, "HTTP 400: it broke", 1),
    "no-content": (as_json({"id": "m", "content": None}), FAILED, "holds no content", 1),
    "cut": (message("alert_past", stop_reason="max_tokens"), UNPARSED, "cut at 8 tokens", 1),
    "context": (
        message("alert_past", stop_reason="model_context_window_exceeded"),
        UNPARSED,
        "end of the model's context",
        1,
    ),
    "blank": (message(None), UNPARSED, "empty answer", 1),
}
ROWS: dict[str, dict[str, Row]] = {
    "openai": COMMON | OPENAI,
    "anthropic": COMMON | ANTHROPIC,
}
CASES = [(engine, name) for engine in SDKS for name in ROWS[engine]]


@pytest.mark.parametrize("engine", SDKS)
def test_every_fault_lands_in_one_outcome_with_its_reason(engine: str) -> None:
    rows = ROWS[engine]
    replies = {name: lambda n, name=name: rows[name][0] for name in rows}
    with FaultServer(replies) as server:
        for name, (_, outcome, reason, calls) in rows.items():
            found = ask(make_model(engine, f"{server.url}/{name}"))
            assert server.calls[name] == calls, name
            assert (found.outcome, found.mask) == (outcome, 0), name
            assert found.reason is not None
            assert re.search(reason, found.reason), (name, found.reason)
            assert KEY[:6] not in found.reason, name
            assert len(found.reason) <= 300
        # A redirect would have gone there.
        assert server.calls.keys() == rows.keys()


@pytest.mark.parametrize("engine", SDKS)
def test_a_reply_without_an_end_is_given_up_and_asked_for_once(engine: str) -> None:
    kind = {"content-type": "application/json"}
    # Zeros, and bytes that don't shrink: 200 kB that unpack to 30 MB.
    packed = gzip.compress(bytes(30_000_000) + random.Random(1).randbytes(150_000), 1)
    rows: dict[str, tuple[Reply, str]] = {
        "endless": ((200, kind, b" " * (LARGEST_REPLY + 1)), "more than 33,554,432 bytes"),
        "packed": ((200, kind | {"content-encoding": "gzip"}, packed), "more than 131,072 bytes"),
        "odd": ((200, kind | {"content-encoding": "br"}, b"x"), "the reply is packed as br"),
    }
    replies = {name: lambda n, name=name: rows[name][0] for name in rows}
    with FaultServer(replies) as server:
        for name, (_, reason) in rows.items():
            found = ask(make_model(engine, f"{server.url}/{name}"))
            assert server.calls[name] == 1, name
            assert found.outcome is FAILED
            assert reason in str(found.reason), found.reason
        assert {h["accept-encoding"] for h in server.headers} == {"identity"}


@pytest.mark.parametrize("engine", SDKS)
def test_a_reply_that_is_packed_without_being_asked_for_is_read(engine: str) -> None:
    status, headers, content = chat() if engine == "openai" else message()
    reply = status, headers | {"content-encoding": "gzip"}, gzip.compress(content)
    with FaultServer({"packed": lambda n: reply}) as server:
        assert ask(make_model(engine, f"{server.url}/packed")).outcome is Outcome.OK


WAITS = {
    "seconds": ({"retry-after": "20"}, 20.0),
    "milliseconds": ({"retry-after-ms": "1500"}, 1.5),
    "a moment": ({"retry-after": "0"}, 0.0),
}


@pytest.mark.parametrize(("engine", "name"), CASES)
def test_a_question_has_ended_within_the_time_that_patience_allows(
    engine: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply, outcome, _, calls = ROWS[engine][name]

    async def slow(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(10)
        if isinstance(reply, bytes) or reply is TRUNCATED:
            raise httpx2.ReadError("reset", request=request)
        return response(reply)

    found: list[Prediction] = []
    service = Imagined(monkeypatch, slow)
    patience = Patience()
    engine_under_test = make_remote(make_model(engine, NOWHERE), None)
    service.drive(engine_under_test, [Session(HELLO.dialogues[0], TEMPLATE)], found.append)
    assert [p.outcome for p in found] == [outcome]
    # What is tried again is tried six times; the others are not.
    assert len(service.begun) == (patience.attempts if calls > 1 else 1)
    waits = service.seconds - 10 * len(service.begun)
    if calls > 1 and name not in ("429-wait", "429-milliseconds", "429-date"):
        # 1 + 2 + 4 + 8 + 16, of which each is shortened by up to a quarter.
        assert 0.75 * 31 <= waits <= 31
    else:
        assert 0 <= waits <= 6


@pytest.mark.parametrize("name", WAITS)
def test_the_wait_that_a_service_asks_for_is_kept_to(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers, seconds = WAITS[name]

    async def handler(request: httpx2.Request) -> httpx2.Response:
        return response(error(429, headers=headers))

    service = Imagined(monkeypatch, handler)
    found: list[Prediction] = []
    under_test = make_remote(make_model("openai", NOWHERE), None)
    service.drive(under_test, [Session(HELLO.dialogues[0], TEMPLATE)], found.append)
    assert [p.outcome for p in found] == [FAILED]
    assert service.begun == pytest.approx([seconds * i for i in range(6)])


@pytest.mark.parametrize("engine", SDKS)
def test_a_call_that_hangs_or_dribbles_ends_at_the_deadline(engine: str) -> None:
    patience = Patience(attempts=2, deadline=1.0, base=0.0)
    with FaultServer({"hang": lambda n: None, "dribble": lambda n: DRIBBLE}) as server:
        for name in ("hang", "dribble"):
            found = ask(make_model(engine, f"{server.url}/{name}"), patience)
            assert server.calls[name] == 2
            assert (found.outcome, found.reason) == (FAILED, "no answer within 1 s")


PASSING = {
    "rate-limit": error(429, headers={"retry-after": "0.02"}),
    "milliseconds": error(429, headers={"retry-after-ms": "20"}),
    "date": error(503, headers={"retry-after": DATE}),
    "overloaded": error(529, type="overloaded_error"),
    "reset": b"",
}


@pytest.mark.parametrize("engine", SDKS)
def test_a_passing_fault_is_asked_again(engine: str) -> None:
    def first(name: str) -> Any:
        return lambda attempt: PASSING[name] if attempt == 0 else GOOD[engine]()

    with FaultServer({name: first(name) for name in PASSING}) as server:
        for name in PASSING:
            found = ask(make_model(engine, f"{server.url}/{name}"))
            assert server.calls[name] == 2
            assert (found.outcome, found.reason) == (Outcome.OK, None)


STOPPING = [
    (error(401, message=LEAK), "the key was not accepted"),
    (error(402, message=LEAK), "the account has no credit"),
    (error(403, message=LEAK), "the key may not use this model"),
    (error(404, message=LEAK), "there is no such model"),
    (error(429, type="insufficient_quota", code="insufficient_quota"), "no credit"),
    (error(400, message="Your credit balance is too low to access the API."), "no credit"),
    (
        as_json([{"error": {"code": 400, "message": "API key not valid. Please pass one."}}], 400),
        "the key was not accepted",
    ),
]


@pytest.mark.parametrize("engine", SDKS)
def test_what_cannot_succeed_stops_the_run_at_once(engine: str) -> None:
    replies = {str(i): lambda n, i=i: STOPPING[i][0] for i in range(len(STOPPING))}
    with FaultServer(replies) as server:
        for i, (_, why) in enumerate(STOPPING):
            model = make_model(engine, f"{server.url}/{i}")
            with pytest.raises(EngineError, match=rf"Tested: .*{why}.*run the same") as fault:
                ask(model)
            assert server.calls[str(i)] == 1
            assert KEY not in str(fault.value)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "86400"}, 86400.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 -9999"}, None),
        ({"retry-after": "Fri, 31 Dec 99999 23:59:59 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_a_server_asks_for_is_read(
    headers: dict[str, str], wait: float | None
) -> None:
    assert asked_wait(headers) == wait
    assert fault_of_status(429, headers, None).wait == wait


# Names that either reader looks for, so that odd values stand where it matters.
FIELDS = [
    *("choices", "message", "content", "text", "type", "usage", "finish_reason", "stop_reason"),
    *("error", "code", "param", "refusal", "model", "stop_details", "input_tokens"),
    *("prompt_tokens", "prompt_tokens_details", "cached_tokens"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner | st.just("text"),
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(reply=JSON, status=st.integers(300, 599))
@settings(deadline=None, max_examples=100)
def test_no_reply_is_too_odd_to_be_read(reply: Any, status: int) -> None:
    for kind, name in ((OpenAIChat, "openai"), (AnthropicMessages, "anthropic")):
        engine = kind.__new__(kind)
        engine.model = make_model(name, NOWHERE)  # type: ignore[arg-type]
        engine.decoding = engine.model.decoding  # type: ignore[assignment]
        answer = engine.read(reply)
        found = error_in(reply)
        assert found is None or fault_in_reply(found, {}).reason
        json.dumps([answer.text, answer.reason, answer.served])
        for count in (answer.tokens_in, answer.tokens_cached, answer.tokens_out):
            assert count is None or type(count) is int
    assert fault_of_status(status, {}, reply).reason


def test_what_follows_is_listed_as_the_engines_do_it() -> None:
    faults = service_faults().set_index("said")
    stops = ["Wrong key", "No credit left", "Key not allowed", "No such model"]
    assert faults.index[faults["kind"] == "stop"].tolist() == stops
    assert faults.loc["Content filter", "kind"] == "refused"
    assert faults.loc["Request not understood", "kind"] == "failed"
    assert faults.loc["Too many requests", "kind"] == "retry"
    assert faults.index[faults["busy"]].tolist() == [
        "Too many requests", "Overloaded", "Overloaded, as Anthropic says it"
    ]  # fmt: skip
