"""Outcome, reason and number of calls for each fault of a service.

The faults were observed with the official SDKs. No engine uses streams.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cradle_engines.api.anthropic_messages import AnthropicMessages
from cradle_engines.api.faults import error_in, fault_in_reply, fault_of_status
from cradle_engines.api.openai_chat import OpenAIChat
from cradle_lib.detection import Answer, Decoding, Options, Outcome, read_journal
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError

from .fault_server import FaultServer, Reply, as_json, chat, error, message
from .services import KEY, SDKS, ServiceRun, after, ask, long_corpus, make_model

pytestmark = pytest.mark.usefixtures("api")

JSON_TYPE = {"content-type": "application/json"}
TRUNCATED = (200, JSON_TYPE | {"content-length": "900"}, b'{"id": ')
LEAK = f"bad {KEY} value"
FAILED, REFUSED, UNPARSED, OK = Outcome.FAILED, Outcome.REFUSED, Outcome.UNPARSED, Outcome.OK
FILTERED = chat(finish_reason="content_filter: PROHIBITED_CONTENT", message={"content": None})
WITHHELD = {"choices": [], "promptFeedback": {"blockReason": "SAFETY"}, "usage": {"x": 1}}
DECLINED = {"type": "refusal", "category": None, "explanation": "Not\nthis."}
GEMINI = as_json([{"error": {"code": 400, "message": "no"}}], 400)
CUT_CHAT = chat(finish_reason="length", message={"content": "alert_past"})
CUT_MESSAGE = message("alert_past", stop_reason="max_tokens")
# A prompt that exceeds a rate limit by itself, which no wait makes acceptable.
TOO_LARGE = {"message": "Request too large for m on tokens per min (TPM): Limit 10, Requested 20."}
TOO_LARGE |= {"type": "tokens", "code": "rate_limit_exceeded"}

# Reply, outcome, reason, and number of calls of at most three.
Row = tuple[Reply | bytes, Outcome, str, int]
COMMON: list[Row] = [
    (error(500), FAILED, "HTTP 500", 3),
    ((502, {"content-type": "text/html"}, b"<p>"), FAILED, "HTTP 502", 3),
    (error(400, message=LEAK), FAILED, r"HTTP 400.*\[key\] value", 1),
    (error(400, message="x" * 280 + KEY), FAILED, r"x\[key\]$", 1),
    (error(413, **TOO_LARGE), FAILED, "HTTP 413", 1),
    (error(429, **TOO_LARGE), FAILED, "HTTP 429", 1),
    ((307, {"location": "/elsewhere/v1/x"}, b""), FAILED, "HTTP 307", 1),
    (b"", FAILED, "the connection broke", 3),
    (TRUNCATED, FAILED, "the connection broke", 3),
    ((200, JSON_TYPE, b'{"id": '), FAILED, "can't be read", 1),
    ((200, JSON_TYPE, b"[" * 200_000), FAILED, "can't be read", 1),
    (as_json(None), FAILED, "is not JSON of", 1),
    (as_json({"error": {"message": LEAK}}), FAILED, r"200.*: bad \[key\]", 3),
]
OPENAI: list[Row] = [
    (chat(message={"content": None, "refusal": "I\ncan't."}), REFUSED, r"^I can't\.$", 1),
    (FILTERED, REFUSED, "^content filter: PROHIBITED_CONTENT$", 1),
    (as_json({"choices": [{"finish_reason": "content_filter"}]}), REFUSED, "^content filter$", 1),
    (chat(finish_reason="SAFETY"), REFUSED, "^SAFETY$", 1),
    (as_json({"object": "chat.completion", "choices": []}), REFUSED, "no reason given", 1),
    (as_json({"choices": None, "usage": {"prompt_tokens": 9}}), REFUSED, "no reason given", 1),
    (as_json(WITHHELD), REFUSED, r"withheld the answer \(SAFETY\)", 1),
    (as_json({"id": "c", "choices": []}), FAILED, "no choice", 1),
    (as_json({"choices": [], "usage": {"completion_tokens": 2}}), FAILED, "no choice", 1),
    (chat(finish_reason=None, message={"content": " "}), FAILED, "neither a text nor a", 1),
    (CUT_CHAT, UNPARSED, "cut at 8 tokens", 1),
    (chat(message={"content": ""}), UNPARSED, "empty answer", 1),
    (GEMINI, FAILED, "HTTP 400: no$", 1),
]
ANTHROPIC: list[Row] = [
    (message(None, stop_reason="refusal", stop_details=DECLINED), REFUSED, r"^Not this\.$", 1),
    (message(None, stop_reason="refusal"), REFUSED, "^declined$", 1),
    (message("I can't", stop_reason="content_filtered"), REFUSED, "^declined$", 1),
    (as_json({"id": "m", "content": None}), FAILED, "no content", 1),
    (CUT_MESSAGE, UNPARSED, "cut at 8 tokens", 1),
    (message(None), UNPARSED, "empty answer", 1),
]
CASES = [
    *(("openai", *row) for row in COMMON + OPENAI),
    *(("anthropic", *row) for row in COMMON + ANTHROPIC),
]


@pytest.mark.parametrize(("engine", "reply", "outcome", "reason", "calls"), CASES)
def test_every_fault_has_its_outcome_reason_and_number_of_calls(
    engine: str, reply: Reply, outcome: Outcome, reason: str, calls: int, service: FaultServer
) -> None:
    path = service.add(lambda n: reply)
    found = ask(make_model(engine, f"{service.url}/{path}"))
    assert service.calls[path] == calls
    assert (found.outcome, found.mask) == (outcome, 0)
    assert re.search(reason, str(found.reason)), found.reason
    assert KEY[:6] not in str(found.reason)
    assert len(str(found.reason)) <= 300
    # Redirects are not followed.
    assert "elsewhere" not in service.calls


@pytest.mark.parametrize("engine", SDKS)
def test_a_port_where_nothing_listens_is_reported(engine: str) -> None:
    with FaultServer({}) as server:
        url = server.url
    with pytest.raises(EngineError, match=r"can't be reached: Cannot connect to host 127\.0\.0\.1"):
        ask(make_model(engine, url))


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
def test_a_permanent_fault_stops_the_run_immediately(engine: str, service: FaultServer) -> None:
    for reply, why in STOPPING:
        path = service.add(lambda n, reply=reply: reply)
        with pytest.raises(EngineError, match=rf"Tested: .*{why}.*run the same") as fault:
            ask(make_model(engine, f"{service.url}/{path}"))
        assert service.calls[path] == 1
        assert KEY not in str(fault.value)


@pytest.mark.parametrize(
    ("reply", "least"),
    [
        (error(500), 31.0),
        (as_json({"error": {"code": 502}}, retry_after="20"), 5 * 20.0),
        # A wait that is too short is replaced by the default.
        (error(500, headers={"retry-after": "0.1"}), 31.0),
    ],
)
def test_a_question_is_tried_six_times_with_exponential_backoff(
    reply: Reply, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = ServiceRun(monkeypatch, lambda _: after(0.0, reply), dialogues=1, turns=1)
    assert [p.outcome for p in start.made] == [FAILED]
    # 1 + 2 + 4 + 8 + 16, or five times the wait that the service asks for.
    assert len(start.service.call_times) == 6
    assert start.service.seconds == pytest.approx(least)


# Names of fields that the parsers read, so that unexpected values appear there.
FIELDS = [
    *("choices", "message", "content", "text", "type", "usage", "finish_reason", "stop_reason"),
    *("error", "code", "param", "refusal", "model", "stop_details", "input_tokens"),
    *("prompt_tokens", "prompt_tokens_details", "cached_tokens"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS), inner | st.just("text"), max_size=5)
    ),
    max_leaves=12,
)


@given(reply=JSON, status=st.integers(300, 599))
def test_any_reply_can_be_parsed(reply: Any, status: int) -> None:
    for kind in (OpenAIChat, AnthropicMessages):
        engine = kind.__new__(kind)
        engine.decoding = Decoding()
        answer = engine.read(reply)
        found = error_in(reply)
        assert found is None or fault_in_reply(found, {}).reason
        json.dumps([answer.text, answer.reason, answer.served])
        for count in (answer.tokens_in, answer.tokens_cached, answer.tokens_out):
            assert count is None or type(count) is int
    assert fault_of_status(status, {}, reply).reason


# ---- Exceptions in this library or an SDK --------------------------------------------


def test_an_exception_while_parsing_a_reply_fails_only_its_question(
    service: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = OpenAIChat.read

    def broken(self: Any, reply: object) -> Answer:
        answer = read(self, reply)
        if answer.text == "odd":
            raise KeyError(f"field {KEY}")
        return answer

    monkeypatch.setattr(OpenAIChat, "read", broken)
    path = service.add(lambda n: chat(message={"content": "odd" if n in (2, 9) else "none"}))
    model, corpus = make_model("openai", f"{service.url}/{path}"), long_corpus(4, 3)
    journal = run(model, corpus, out=tmp_path, options=Options(concurrency=4))
    failed = [p for p in read_journal(journal)[1] if p.outcome is FAILED]
    assert [str(p.reason).startswith("KeyError: 'field ") for p in failed] == [True] * 2
    assert KEY not in journal.read_text()
    assert (len(read_journal(journal)[1]), service.calls[path]) == (12, 12)
    run(model, corpus, out=tmp_path)
    assert service.calls[path] == 14
    assert {p.outcome for p in read_journal(journal)[1]} == {OK}
