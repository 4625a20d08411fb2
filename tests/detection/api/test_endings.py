"""Only an answer that is known to be complete counts, and an error is one with any status."""

from __future__ import annotations

from typing import Any

import pytest

from cradle_lib.detection import Outcome, Prediction, Session
from cradle_lib.detection.api.dispatch import Patience
from cradle_lib.detection.journal_lines import to_line
from cradle_lib.errors import EngineError

from .fault_server import FaultServer, Reply, as_json, chat, message
from .services import (
    GOOD,
    HELLO,
    NOWHERE,
    SDKS,
    TEMPLATE,
    Imagined,
    ask,
    long_corpus,
    make_model,
    make_remote,
    response,
    sessions,
)

pytestmark = pytest.mark.usefixtures("api")

UNKNOWN: list[Any] = [
    *("error", "abort", "cancelled", "ERROR", "", "Stop", "stop ", "unknown"),
    *(0, 3, True, 1.5, ["stop"], {"stop": 1}),
]
# Each interface's own words for other ends, and the words of the other interface.
FOREIGN = {
    "openai": ["tool_calls", "function_call", "end_turn", "max_tokens", "insufficient_system"],
    "anthropic": ["tool_use", "pause_turn", "stop", "length", "content_filter", "compaction"],
}
COMPLETE = {"openai": ["stop", "eos", "eos_token"], "anthropic": ["end_turn", "stop_sequence"]}


def ending(engine: str, value: Any, text: str = "none") -> Reply:
    if engine == "openai":
        return chat(finish_reason=value, message={"content": text})
    return message(text, stop_reason=value)


@pytest.mark.parametrize("engine", SDKS)
def test_an_answer_with_an_unknown_ending_has_failed(engine: str) -> None:
    values = [*UNKNOWN, *FOREIGN[engine]]
    replies = {str(i): lambda n, v=v: ending(engine, v) for i, v in enumerate(values)}
    field = "finish_reason" if engine == "openai" else "stop_reason"
    with FaultServer(replies) as server:
        for i, value in enumerate(values):
            found = ask(make_model(engine, f"{server.url}/{i}"))
            assert (found.outcome, found.answer, found.mask) == (Outcome.FAILED, "", 0), value
            shown = f"a {type(value).__name__}" if isinstance(value, list | dict) else repr(value)
            assert found.reason == f"the answer ended with {field} {shown}"
            # It was paid for.
            assert (found.tokens_in, found.tokens_out) == (9, 2)


@pytest.mark.parametrize("engine", SDKS)
def test_an_answer_that_is_complete_counts(engine: str) -> None:
    values = COMPLETE[engine]
    replies = {str(i): lambda n, v=v: ending(engine, v) for i, v in enumerate(values)}
    with FaultServer(replies) as server:
        for i in range(len(values)):
            found = ask(make_model(engine, f"{server.url}/{i}"))
            assert (found.outcome, found.reason, found.ending) == (Outcome.OK, None, None)
            assert "ending" not in to_line(found)


@pytest.mark.parametrize("engine", SDKS)
def test_a_question_whose_answer_was_not_complete_is_asked_again(engine: str) -> None:
    def reply(attempt: int) -> Reply:
        return ending(engine, "error") if attempt == 1 else GOOD[engine]()

    corpus = long_corpus(1, 3)
    found: list[Prediction] = []
    with FaultServer({"once": reply}) as server:
        model = make_model(engine, f"{server.url}/once")
        make_remote(model).answer_all(sessions(corpus), found.append)
        assert [one.outcome for one in found] == ["ok", "failed", "ok"]
        again: list[Prediction] = []
        make_remote(model).answer_all(sessions(corpus, found), again.append)
    assert [(one.turn, one.outcome) for one in again] == [(found[1].turn, "ok")]


@pytest.mark.parametrize("engine", SDKS)
@pytest.mark.parametrize("absent", [False, True])
def test_a_missing_ending_is_accepted_told_once_and_recorded(engine: str, absent: bool) -> None:
    def reply(attempt: int) -> Reply:
        status, headers, content = ending(engine, None)
        name = b"finish_reason" if engine == "openai" else b"stop_reason"
        return status, headers, content.replace(name, b"other") if absent else content

    notices: list[str] = []
    found: list[Prediction] = []
    with FaultServer({"missing": reply}) as server:
        remote = make_remote(make_model(engine, f"{server.url}/missing"), notice=notices.append)
        remote.answer_all(sessions(long_corpus(2, 2)), found.append)
    assert [(one.outcome, one.ending) for one in found] == [(Outcome.OK, "missing")] * 4
    assert [to_line(one)["ending"] for one in found] == ["missing"] * 4
    assert len(notices) == 1
    assert "does not say how its answers end" in notices[0]


@pytest.mark.parametrize("engine", SDKS)
def test_neither_a_text_nor_an_ending_is_no_answer(engine: str) -> None:
    with FaultServer({"blank": lambda n: ending(engine, None, " ")}) as server:
        found = ask(make_model(engine, f"{server.url}/blank"))
    assert found.outcome is Outcome.FAILED
    assert "neither a text nor a" in str(found.reason)


def within(engine: str, place: str, error: Any) -> Reply:
    """Puts an error into a reply of status 200, alone or beside an answer."""
    if place == "alone":
        return as_json({"error": error})
    if place == "beside":
        status, headers, content = GOOD[engine]()
        extra = as_json({"error": error})[2]
        return status, headers, content[:-1] + b", " + extra[1:]
    return chat(finish_reason="error", error=error)


PLACES = [
    *(("openai", "alone"), ("openai", "beside"), ("openai", "choice")),
    *(("anthropic", "alone"), ("anthropic", "beside")),
]
PASSING: list[Any] = [
    {"code": 429, "message": "slow down"},
    {"code": "429", "message": "slow down"},
    {"code": "rate_limit_exceeded", "type": "requests", "message": "slow down"},
    {"type": "rate_limit_error", "message": "slow down"},
    {"type": "RateLimitError", "code": None, "message": "slow down"},
    {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow down"},
    {"type": "overloaded_error", "message": "Overloaded"},
    {"code": 502, "message": "Provider returned error"},
    {"code": 503, "message": "no provider"},
    {"type": "server_error", "code": None, "message": "trouble"},
    {"message": "Provider returned error"},
    "Rate limit exceeded",
    429,
]


@pytest.mark.parametrize(("engine", "place"), PLACES)
def test_a_passing_error_with_status_200_is_asked_again(engine: str, place: str) -> None:
    def first(error: Any) -> Any:
        return lambda n: within(engine, place, error) if n == 0 else GOOD[engine]()

    with FaultServer({str(i): first(error) for i, error in enumerate(PASSING)}) as server:
        for i, error in enumerate(PASSING):
            found = ask(make_model(engine, f"{server.url}/{i}"))
            assert (found.outcome, server.calls[str(i)]) == (Outcome.OK, 2), error


STOPPING: list[tuple[Any, str]] = [
    ({"code": 402, "message": "Insufficient credits"}, "no credit"),
    ({"code": "insufficient_quota", "type": "insufficient_quota", "message": "x"}, "no credit"),
    ({"code": 429, "type": "insufficient_quota", "message": "x"}, "no credit"),
    ({"type": "billing_error", "message": "x"}, "no credit"),
    ({"code": 401, "message": "No auth"}, "the key was not accepted"),
    ({"code": "invalid_api_key", "message": "x"}, "the key was not accepted"),
    ({"type": "authentication_error", "message": "x"}, "the key was not accepted"),
    ({"type": "permission_error", "message": "x"}, "may not use this model"),
    ({"code": "model_not_found", "message": "x"}, "no such model"),
    ({"message": "Your credit balance is too low to access the API."}, "no credit"),
]


@pytest.mark.parametrize(("engine", "place"), PLACES)
def test_an_error_with_status_200_that_stays_ends_the_run(engine: str, place: str) -> None:
    replies = {
        str(i): lambda n, error=error: within(engine, place, error)
        for i, (error, _) in enumerate(STOPPING)
    }
    with FaultServer(replies) as server:
        for i, (_, why) in enumerate(STOPPING):
            with pytest.raises(EngineError, match=rf"Tested: .*{why}.*HTTP 200.*run the same"):
                ask(make_model(engine, f"{server.url}/{i}"))
            assert server.calls[str(i)] == 1


ENDING: list[tuple[Any, Outcome]] = [
    ({"code": 400, "message": "too long"}, Outcome.FAILED),
    ({"code": "context_length_exceeded", "message": "too long"}, Outcome.FAILED),
    ({"type": "invalid_request_error", "message": "too long"}, Outcome.FAILED),
    ({"object": "error", "type": "BadRequestError", "code": 400, "message": "x"}, Outcome.FAILED),
    ({"code": "content_filter", "message": "filtered"}, Outcome.REFUSED),
    ({"code": 403, "message": "flagged", "metadata": {"flagged_input": "..."}}, Outcome.REFUSED),
]


@pytest.mark.parametrize(("engine", "place"), PLACES)
def test_other_errors_with_status_200_end_the_question_only(engine: str, place: str) -> None:
    replies = {
        str(i): lambda n, error=error: within(engine, place, error)
        for i, (error, _) in enumerate(ENDING)
    }
    with FaultServer(replies) as server:
        for i, (error, outcome) in enumerate(ENDING):
            found = ask(make_model(engine, f"{server.url}/{i}"))
            assert (found.outcome, found.mask, server.calls[str(i)]) == (outcome, 0, 1), error
            assert str(found.reason).startswith("HTTP 200, error")


@pytest.mark.parametrize("error", [None, "", {}, []])
@pytest.mark.parametrize("engine", SDKS)
def test_an_empty_error_beside_an_answer_is_none(engine: str, error: Any) -> None:
    with FaultServer({"empty": lambda n: within(engine, "beside", error)}) as server:
        assert ask(make_model(engine, f"{server.url}/empty")).outcome is Outcome.OK


@pytest.mark.parametrize("engine", SDKS)
def test_a_rate_limit_with_status_200_waits_as_long_as_asked(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handler(request: Any) -> Any:
        status, headers, content = as_json({"error": {"code": 429, "message": "slow down"}})
        return response((status, headers | {"retry-after": "20"}, content))

    service = Imagined(monkeypatch, handler)
    found: list[Prediction] = []
    under_test = make_remote(make_model(engine, NOWHERE), None)
    service.drive(under_test, [Session(HELLO.dialogues[0], TEMPLATE)], found.append)
    assert [(p.outcome, p.reason) for p in found] == [
        (Outcome.FAILED, "HTTP 200, error 429: slow down")
    ]
    assert service.begun == pytest.approx([20.0 * i for i in range(Patience().attempts)])
