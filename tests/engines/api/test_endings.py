"""Incomplete answers, truncated prompts, and errors in replies with status 200."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cradle_engines.api.faults import error_in, fault_in_reply
from cradle_lib.corpus.release import write_release
from cradle_lib.detection import Options, Outcome, Prediction
from cradle_lib.detection.runs.journal import read_answers, to_line
from cradle_lib.detection.runs.run import run

from ...cli.in_process import invoke
from .fault_server import FaultServer, Reply, as_json, chat, message
from .services import GOOD, SDKS, ask, long_corpus, make_model, make_remote, sessions

pytestmark = pytest.mark.usefixtures("api")

# Endings that do not mean completion, and endings of the other interface.
UNKNOWN: dict[str, list[Any]] = {
    "openai": ["error", "", "Stop", 0, ["stop"], "tool_calls", "end_turn"],
    "anthropic": ["error", "", {"stop": 1}, "tool_use", "pause_turn", "stop"],
}
COMPLETE = {"openai": ["stop", "eos", "eos_token"], "anthropic": ["end_turn", "stop_sequence"]}


def ending(engine: str, value: Any, text: str = "none") -> Reply:
    if engine == "openai":
        return chat(finish_reason=value, message={"content": text})
    return message(text, stop_reason=value)


@pytest.mark.parametrize("engine", SDKS)
def test_only_an_answer_with_a_known_ending_counts(engine: str, service: FaultServer) -> None:
    field = "finish_reason" if engine == "openai" else "stop_reason"
    for value in UNKNOWN[engine] + COMPLETE[engine]:
        name = service.add(lambda n, value=value: ending(engine, value))
        found = ask(make_model(engine, f"{service.url}/{name}"))
        if isinstance(value, str) and value in COMPLETE[engine]:
            assert (found.outcome, found.reason, found.ending) == (Outcome.OK, None, None)
            continue
        assert (found.outcome, found.answer, found.mask) == (Outcome.FAILED, "", 0), value
        shown = f"a {type(value).__name__}" if isinstance(value, list | dict) else repr(value)
        assert found.reason == f"the answer ended with {field} {shown}"
        # It was paid for.
        assert (found.tokens_in, found.tokens_out) == (9, 2)


@pytest.mark.parametrize(("engine", "absent"), [("openai", False), ("anthropic", True)])
def test_a_missing_ending_is_accepted_and_recorded(
    engine: str, absent: bool, service: FaultServer
) -> None:
    def reply(attempt: int) -> Reply:
        status, headers, content = ending(engine, None)
        name = b"finish_reason" if engine == "openai" else b"stop_reason"
        return status, headers, content.replace(name, b"other") if absent else content

    notices: list[str] = []
    found: list[Prediction] = []
    name = service.add(reply)
    remote = make_remote(make_model(engine, f"{service.url}/{name}"), notice=notices.append)
    remote.answer_all(sessions(long_corpus(2, 2)), found.append)
    assert [(one.outcome, one.ending) for one in found] == [(Outcome.OK, "missing")] * 4
    assert [to_line(one)["ending"] for one in found] == ["missing"] * 4
    assert len(notices) == 1
    assert "does not say how its answers end" in notices[0]


def test_a_change_of_served_model_is_reported_once(service: FaultServer, tmp_path: Path) -> None:
    names = ["a", "a", "b", "c", "b", "b"]

    def reply(attempt: int) -> Reply:
        return as_json(json.loads(chat()[2]) | {"provider": names[attempt]})

    notices: list[str] = []
    options = Options(concurrency=1, notice=notices.append)
    model = make_model("openai", f"{service.url}/{service.add(reply)}")
    path = run(model, long_corpus(2, 3), out=tmp_path, options=options)
    served = [line.served for line in read_answers(path)[1]]
    assert served == [f"smollm2-135m-2026-01-01 {name} fp_1" for name in names]
    [notice] = notices
    assert (
        "come from smollm2-135m-2026-01-01 a fp_1, others from smollm2-135m-2026-01-01 b fp_1"
        in notice
    )


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("openai/gpt-4o", "gpt-4o", True),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5-20250929", True),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku-20241022", True),
        ("./weights/Qwen3-32B", "qwen3-32b", True),
        ("llama-3-70b", "meta-llama/llama-3-70b:free", True),
        ("gpt-4", "tiny-model-1b", False),
        ("gpt-4", "gpt-4-0613", True),
        ("Qwen3-32B", "Qwen3-8B", False),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4", "gpt-4o", False),
        ("gemini-2.5-flash", "gemini-2.5-flash-lite", False),
    ],
)
def test_another_model_than_asked_for_is_reported_once(
    asked: str, served: str, same: bool, service: FaultServer, tmp_path: Path
) -> None:
    name = service.add(lambda n: as_json(json.loads(chat()[2]) | {"model": served}))
    notices: list[str] = []
    model = make_model("openai", f"{service.url}/{name}").model_copy(update={"weights": asked})
    run(model, long_corpus(2, 2), out=tmp_path, options=Options(notice=notices.append))
    assert len(notices) == (not same)
    assert same or f"says that {served} fp_1 answers, but {asked} was asked for" in notices[0]


@pytest.mark.parametrize("engine", SDKS)
def test_an_answer_with_a_call_of_a_tool_is_not_complete(engine: str, service: FaultServer) -> None:
    if engine == "openai":
        call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        reply = chat(finish_reason="stop", message={"content": "none", "tool_calls": [call]})
    else:
        body = json.loads(message("none", stop_reason="end_turn")[2])
        body["content"] += [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]
        reply = as_json(body)
    found = ask(make_model(engine, f"{service.url}/{service.add(lambda n: reply)}"))
    assert (found.outcome, found.answer) == (Outcome.FAILED, "")
    assert "'tool_" in str(found.reason)


@pytest.mark.parametrize(
    ("reply", "advised"),
    [
        (chat(message={"content": "I'm sorry, I can't say."}), True),
        (chat(finish_reason="error"), False),
        (chat(), False),
    ],
)
def test_advice_about_unreadable_answers_is_of_use_for_the_engine(
    reply: Reply, advised: bool, service: FaultServer, tmp_path: Path
) -> None:
    write_release(long_corpus(1, 2), tmp_path / "own.csv")
    server = f"base_url={service.url}/{service.add(lambda n: reply)}/v1"
    command = ("infer", "--model", "openai:m", "--corpus", str(tmp_path / "own.csv"))
    found = invoke(*command, "--set", server, "--out", str(tmp_path))
    assert ("No answer could be read" in found.stderr) == advised
    # A service does not use these settings.
    assert "answer_after" not in found.stderr
    assert "mode=constrained" not in found.stderr


# ---- Errors in a reply of status 200 -------------------------------------------------

KINDS: list[tuple[Any, str]] = [
    ({"code": "429", "message": "slow down"}, "retry"),
    ({"type": "overloaded_error", "message": "Overloaded"}, "retry"),
    ({"message": "Provider returned error"}, "retry"),
    ("Rate limit exceeded", "retry"),
    (429, "retry"),
    ({"code": 402, "message": "Insufficient credits"}, "no credit"),
    ({"code": 429, "type": "insufficient_quota", "message": "x"}, "no credit"),
    ({"type": "authentication_error", "message": "x"}, "the key was not accepted"),
    ({"type": "permission_error", "message": "x"}, "may not use this model"),
    ({"code": "model_not_found", "message": "x"}, "no such model"),
    ({"code": "context_length_exceeded", "message": "too long"}, "failed"),
    ({"object": "error", "type": "BadRequestError", "code": 400, "message": "x"}, "failed"),
    ({"code": "content_filter", "message": "filtered"}, "refused"),
    ({"code": 403, "message": "flagged", "metadata": {"flagged_input": "..."}}, "refused"),
]


@pytest.mark.parametrize(("error", "kind"), KINDS)
def test_an_error_with_status_200_is_classified_like_its_own_status(error: Any, kind: str) -> None:
    for reply in ({"error": error}, [{"error": error}], {"choices": [{"error": error}]}):
        fault = fault_in_reply(error_in(reply), {})
        if kind in ("retry", "failed", "refused"):
            assert (fault.kind, fault.reason.startswith("HTTP 200, error")) == (kind, True)
        else:
            assert fault.kind == "stop"
            assert kind in fault.reason


@pytest.mark.parametrize("engine", SDKS)
@pytest.mark.parametrize("beside", [False, True])
def test_an_error_in_a_reply_with_an_answer_counts_unless_it_is_empty(
    engine: str, beside: bool, service: FaultServer
) -> None:
    def reply(error: Any) -> Reply:
        status, headers, content = GOOD[engine]()
        extra = as_json({"error": error})[2]
        return status, headers, content[:-1] + b", " + extra[1:] if beside else extra

    name = service.add(lambda n: reply({"code": 429}) if n == 0 else GOOD[engine]())
    assert ask(make_model(engine, f"{service.url}/{name}")).outcome is Outcome.OK
    assert service.calls[name] == 2
    for empty in (None, "", {}):
        name = service.add(lambda n, empty=empty: reply(empty))
        found = ask(make_model(engine, f"{service.url}/{name}"))
        assert (found.outcome is Outcome.OK) == beside
