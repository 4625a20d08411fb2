"""Exceptions that a call raises and that are no fault of the service."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cradle_lib.detection import Answer, Options, Outcome, Prediction, read_journal
from cradle_lib.detection.api.anthropic_messages import AnthropicMessages
from cradle_lib.detection.api.openai_chat import OpenAIChat
from cradle_lib.detection.run import run
from cradle_lib.errors import EngineError

from .fault_server import FaultServer, Reply
from .services import GOOD, KEY, SDKS, long_corpus, make_model, make_remote, sessions

pytestmark = pytest.mark.usefixtures("api")

CLASSES = {"openai": OpenAIChat, "anthropic": AnthropicMessages}


def served(engine: str, bad: Callable[[int], bool]) -> Callable[[int], Reply]:
    """Replies as usual, and to some attempts with a text that breaks the reader."""

    def reply(attempt: int) -> Reply:
        status, headers, content = GOOD[engine]()
        return status, headers, content.replace(b'"none"', b'"odd"') if bad(attempt) else content

    return reply


def break_reader(patch: pytest.MonkeyPatch, engine: str, error: Exception) -> None:
    read = CLASSES[engine].read

    def broken(self: Any, reply: object) -> Answer:
        answer = read(self, reply)
        if answer.text == "odd":
            raise error
        return answer

    patch.setattr(CLASSES[engine], "read", broken)


@pytest.mark.parametrize("engine", SDKS)
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_bug_in_reading_a_reply_fails_its_question_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, concurrency: int
) -> None:
    break_reader(monkeypatch, engine, KeyError(f"field {KEY}"))
    corpus, options = long_corpus(4, 3), Options(concurrency=concurrency)
    with FaultServer({"some": served(engine, lambda attempt: attempt in (2, 9))}) as server:
        model = make_model(engine, f"{server.url}/some")
        path = run(model, corpus, out=tmp_path, options=options)
        failed = [p for p in read_journal(path)[1] if p.outcome is Outcome.FAILED]
        assert len(read_journal(path)[1]) == 12
        assert len(failed) == 2
        for one in failed:
            assert str(one.reason).startswith("KeyError: 'field ")
        assert KEY not in path.read_text()
        assert server.calls["some"] == 12
        run(model, corpus, out=tmp_path, options=options)
        assert server.calls["some"] == 14
    assert {p.outcome for p in read_journal(path)[1]} == {Outcome.OK}


@pytest.mark.parametrize("engine", SDKS)
def test_three_bugs_in_a_row_stop_the_run_and_its_answers_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    corpus = long_corpus(20, 3)
    with FaultServer({"soon": served(engine, lambda attempt: attempt > 5)}) as server:
        model = make_model(engine, f"{server.url}/soon")
        with monkeypatch.context() as patch:
            break_reader(patch, engine, AttributeError(f"no such field: {KEY}"))
            with pytest.raises(EngineError) as error:
                run(model, corpus, out=tmp_path, options=Options(concurrency=4))
        said = str(error.value)
        assert said.startswith("Tested: 3 questions in a row raised an exception, the last one in")
        assert "AttributeError: no such field" in said
        assert "\n" not in said
        assert KEY not in "".join(traceback.format_exception(error.value))
        [path] = tmp_path.glob("*/*.jsonl")
        kept = read_journal(path)[1]
        assert [p.outcome for p in kept].count(Outcome.OK) == 6
        assert len(kept) < 20
        # Without the bug the next start goes on; the odd text is no label.
        before = server.calls["soon"]
        run(model, corpus, out=tmp_path)
        assert server.calls["soon"] == before + 54
    assert [p.outcome for p in read_journal(path)[1]].count(Outcome.OK) == 6
    assert Outcome.FAILED not in {p.outcome for p in read_journal(path)[1]}


def test_errors_of_the_project_in_a_call_stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Prediction] = []
    break_reader(monkeypatch, "openai", EngineError("the key is gone"))
    with FaultServer({"bad": served("openai", lambda attempt: attempt == 2)}) as server:
        remote = make_remote(make_model("openai", f"{server.url}/bad"), concurrency=1)
        with pytest.raises(EngineError, match="the key is gone"):
            remote.answer_all(sessions(long_corpus(2, 3)), found.append)
    assert len(found) == 2
