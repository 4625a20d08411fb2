"""What is sent to a service and what is read from its reply; what it does not take is left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Options, Outcome, Prediction, Session, read_journal
from cradle_lib.detection.api.anthropic_messages import AnthropicMessages
from cradle_lib.detection.api.openai_chat import OpenAIChat
from cradle_lib.detection.local.local_engine import Local
from cradle_lib.detection.model import Decoding
from cradle_lib.detection.run import run

from .fault_server import FaultServer, Reply, as_json, chat, error, message
from .services import (
    GOOD,
    NOWHERE,
    SDKS,
    TEMPLATE,
    ask,
    joined,
    long_corpus,
    make_model,
    make_remote,
    sessions,
)

pytestmark = pytest.mark.usefixtures("api")


@pytest.mark.parametrize("engine", SDKS)
def test_the_request_holds_the_sessions_text_and_the_papers_settings(engine: str) -> None:
    with FaultServer({"ok": lambda n: GOOD[engine]()}) as server:
        ask(make_model(engine, f"{server.url}/ok", temperature=0.0, seed=3))
        ask(make_model(engine, f"{server.url}/ok"))
        first, second = server.seen
        headers = server.headers[0]
    least = {
        "model": "smollm2-135m",
        "messages": [{"role": "user", "content": "Label.\nUser: Hello."}],
        "max_tokens": 8,
    }
    assert first == least | {"temperature": 0.0, "seed": 3}
    assert second == least
    assert headers["authorization"] == "Bearer sk-planted-0123456789"
    if engine == "anthropic":
        assert headers["anthropic-version"] == "2023-06-01"


def test_all_four_engines_send_the_same_messages(
    own_endpoints: Callable[[str], None], corpus: Corpus
) -> None:
    prompt = Session(corpus.dialogues[1], TEMPLATE).prompt
    assert prompt
    for engine in SDKS:
        for url in (None, NOWHERE):
            remote = make_remote(make_model(engine, url))
            (only,) = remote.body(prompt)["messages"]
            (theirs,) = prompt.messages
            assert only["role"] == theirs["role"]
            assert joined(only["content"]) == theirs["content"] == prompt.text
    # The reference and the wave encode a prompt through the same object.
    seen: list[Any] = []

    def apply_chat_template(conversations: Any, **_: Any) -> dict[str, list[list[int]]]:
        seen.extend(conversations)
        return {"input_ids": [[0]]}

    embedding = SimpleNamespace(weight=torch.zeros(1))
    lm = SimpleNamespace(get_input_embeddings=lambda: embedding)
    tokenizer = SimpleNamespace(
        chat_template="c",
        apply_chat_template=apply_chat_template,
        all_special_tokens=[],
        all_special_ids=[],
        added_tokens_decoder={},
    )
    Local(lm, tokenizer, Decoding(), None).encode(prompt)
    assert seen == [prompt.messages]


@pytest.fixture
def own_endpoints(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a server in the place of the providers' own endpoints."""

    def put(url: str) -> None:
        monkeypatch.setattr(OpenAIChat, "endpoint", f"{url}/own/v1")
        monkeypatch.setattr(AnthropicMessages, "endpoint", f"{url}/own")

    return put


def test_anthropic_is_told_where_the_static_part_and_the_history_end(
    own_endpoints: Callable[[str], None], corpus: Corpus
) -> None:
    made: list[Prediction] = []
    prompts: list[str] = []
    with FaultServer({"own": lambda n: message()}) as server:
        own_endpoints(server.url)
        model = make_model("anthropic", None)
        session = Session(corpus.dialogues[0], TEMPLATE)

        def emit(prediction: Prediction) -> None:
            made.append(prediction)
            prompts.append(session.prompt.text if session.prompt else "")

        prompts.append(session.prompt.text if session.prompt else "")
        make_remote(model).answer_all([session], emit)
        bodies = server.seen
    assert len(bodies) == 3
    before: list[str] = []
    for body, text in zip(bodies, prompts, strict=False):
        (only,) = body["messages"]
        assert only["role"] == "user"
        blocks = [block["text"] for block in only["content"]]
        # The blocks are the text that every other engine sends, cut and not changed.
        assert "".join(blocks) == text
        assert all(block.strip() for block in blocks)
        marked = [i for i, block in enumerate(only["content"]) if "cache_control" in block]
        assert marked == sorted({0, len(blocks) - 2})
        assert blocks[0] == "Label.\n"
        # What was marked before stands where it stood, so that it is found again.
        assert blocks[: len(before)] == before
        before = blocks[:-1]
    assert before == [
        "Label.\n",
        "User: Hi, rough week at work.\nMODEL_TAG: none\nListener: What happened?",
        "\nUser: I can't see the point of any of it.\nMODEL_TAG: none\nListener: Do you think of "
        "dying?",
    ]
    assert prompts[2].endswith("dying?\nUser: Yes, I wish I was dead.")


def test_openai_gets_one_cache_key_for_a_run_and_the_limit_under_its_newer_name(
    own_endpoints: Callable[[str], None], corpus: Corpus
) -> None:
    with FaultServer({"own": lambda n: chat()}) as server:
        own_endpoints(server.url)
        make_remote(make_model("openai", None)).answer_all(sessions(corpus), lambda _: None)
        bodies = server.seen
    assert len(bodies) == 6
    (key,) = {body["prompt_cache_key"] for body in bodies}
    assert key.startswith("cradle-")
    assert {body["max_completion_tokens"] for body in bodies} == {8}
    assert not any("max_tokens" in body for body in bodies)


@pytest.mark.parametrize("engine", SDKS)
def test_tokens_mean_the_same_whoever_counts_them_and_what_was_served_is_kept(
    engine: str,
) -> None:
    with FaultServer({"ok": lambda n: GOOD[engine]()}) as server:
        found = ask(make_model(engine, f"{server.url}/ok"))
    # Chat: 9 in all, of which 4 read and 3 written. Messages: 2 fresh + 4 read + 3 written.
    counts = (found.tokens_in, found.tokens_cached, found.tokens_written, found.tokens_out)
    assert counts == (9, 4, 3, 2)
    fingerprint = " fp_1" if engine == "openai" else ""
    assert found.served == f"m-2026-01-01{fingerprint}"


@pytest.mark.parametrize("engine", SDKS)
def test_tokens_that_nobody_told_are_unknown_and_not_none_at_all(engine: str) -> None:
    body = json.loads(GOOD[engine]()[2])
    bare = body | {"usage": None, "model": None, "system_fingerprint": None}
    with FaultServer({"ok": lambda n: as_json(bare)}) as server:
        found = ask(make_model(engine, f"{server.url}/ok"))
    assert found.outcome is Outcome.OK
    counts = (found.tokens_in, found.tokens_cached, found.tokens_written, found.tokens_out)
    assert counts == (None, None, None, None)
    assert found.served is None


def test_reasoning_that_only_the_total_counts_is_counted() -> None:
    body = json.loads(chat()[2])
    # As Gemini does: 21 asked, 5 answered, 81 in all, so that 55 were thought.
    body["usage"] = {"prompt_tokens": 21, "completion_tokens": 5, "total_tokens": 81}
    with FaultServer({"ok": lambda n: as_json(body)}) as server:
        assert ask(make_model("openai", f"{server.url}/ok")).tokens_out == 60


# ---- Parameters that a service does not take -----------------------------------------


def picky(engine: str, **rejected: str) -> tuple[Callable[[int], Reply], list[Any], Any]:
    """A service that refuses some parameters with a message, and counts how often."""
    refusals: list[str] = []
    seen: list[Any] = []

    def reply(attempt: int) -> Reply:
        body = seen[attempt]
        for name, said in rejected.items():
            marks = json.dumps(body["messages"])
            if name in body or f'"{name}"' in marks:
                refusals.append(name)
                return error(400, message=said)
        return GOOD[engine]()

    return reply, refusals, seen


@pytest.mark.parametrize("engine", SDKS)
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_parameter_that_is_not_taken_is_dropped_once_a_run_and_recorded(
    engine: str, concurrency: int, tmp_path: Path
) -> None:
    many = long_corpus(6, 3)
    reply, refusals, seen = picky(
        engine,
        seed='Unknown name "seed": Cannot find field.',
        temperature="temperature is deprecated for this model.",
    )
    told: list[str] = []
    options = Options(concurrency=concurrency, notice=told.append)
    with FaultServer({"picky": reply}, seen) as server:
        model = make_model(engine, f"{server.url}/picky", temperature=0.0, seed=1)
        predictions = read_journal(run(model, many, out=tmp_path, options=options))[1]
        assert sorted(refusals) == ["seed", "temperature"]
        assert server.calls["picky"] == 18 + 2
        # One turn of a dialogue is lost: what was learned about parameters is not.
        path = tmp_path / "tiny" / f"m-{engine}.jsonl"
        path.write_text("".join(line + "\n" for line in path.read_text().splitlines()[:-1]))
        again = read_journal(run(model, many, out=tmp_path, options=options))[1]
        assert len(refusals) == 2
        assert server.calls["picky"] == 18 + 2 + 1
    for made in (predictions, again):
        assert len(made) == 18
        assert {p.outcome for p in made} == {Outcome.OK}
        assert {tuple(sorted(p.dropped)) for p in made} == {("seed", "temperature")}
    assert sum("temperature" in sentence for sentence in told) == 1
    assert [p.answer for p in again] == [p.answer for p in predictions]


def test_answers_with_everything_that_was_asked_for_say_nothing(tmp_path: Path) -> None:
    with FaultServer({"ok": lambda n: chat()}) as server:
        model = make_model("openai", f"{server.url}/ok", temperature=0.0)
        path = run(model, long_corpus(1, 2), out=tmp_path)
    assert "dropped" not in path.read_text()
    assert {p.dropped for p in read_journal(path)[1]} == {()}


def test_marks_for_the_cache_can_be_dropped_and_the_text_stays(
    own_endpoints: Callable[[str], None], corpus: Corpus
) -> None:
    said = "messages.0.content.0.cache_control: Extra inputs are not permitted"
    reply, refusals, seen = picky("anthropic", cache_control=said)
    made: list[Prediction] = []
    with FaultServer({"own": reply}, seen) as server:
        own_endpoints(server.url)
        make_remote(make_model("anthropic", None)).answer_all(sessions(corpus), made.append)
    assert len(refusals) == 1
    assert {p.dropped for p in made} == {("cache_control",)}
    text = "".join(block["text"] for block in seen[0]["messages"][0]["content"])
    assert text in [body["messages"][0]["content"] for body in seen[1:]]


def test_the_limit_is_sent_under_its_other_name() -> None:
    said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    reply, refusals, seen = picky("openai", max_tokens=said)
    with FaultServer({"picky": reply}, seen) as server:
        found = ask(make_model("openai", f"{server.url}/picky"))
    assert refusals == ["max_tokens"]
    assert seen[-1]["max_completion_tokens"] == 8
    assert (found.outcome, found.dropped) == (Outcome.OK, ("max_tokens",))
