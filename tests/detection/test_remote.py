"""Many dialogues at once against one service: nothing lost, doubled, or asked for in vain."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Options, Outcome, Prediction, Session, read_journal, run
from cradle_lib.detection.engines.local import Local
from cradle_lib.detection.engines.remote import Patience
from cradle_lib.detection.registry import Decoding, EngineName
from cradle_lib.errors import EngineError

from .dialogues import make_corpus
from .fault_server import FaultServer, Reply, as_json, chat, error, message
from .services import (
    GOOD,
    HURRY,
    NOWHERE,
    SDKS,
    TEMPLATE,
    Imagined,
    ask,
    joined,
    make_model,
    make_remote,
    prompt_of,
    response,
)

pytestmark = pytest.mark.usefixtures("api")


def sessions(corpus: Corpus, stored: list[Prediction] | None = None) -> list[Session]:
    kept = [p for p in stored or [] if p.outcome is not Outcome.FAILED]
    return [
        Session(d, TEMPLATE, stored=[p for p in kept if p.dialogue == d.id])
        for d in corpus.dialogues
    ]


def long_corpus(dialogues: int, turns: int) -> Corpus:
    return make_corpus(
        [[("User", f"turn {i}.{j}", "none") for j in range(turns)] for i in range(dialogues)]
    )


# ---- What is sent, and what comes back -----------------------------------------------


@pytest.mark.parametrize("engine", SDKS)
def test_the_request_holds_the_sessions_text_and_the_papers_settings(engine: EngineName) -> None:
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
            (only,) = remote.body(prompt, remote.settings())["messages"]
            (theirs,) = prompt.messages
            assert only["role"] == theirs["role"]
            assert joined(only["content"]) == theirs["content"] == prompt.text
    # The reference and the wave encode a prompt through the same object.
    seen: list[Any] = []

    def apply_chat_template(messages: Any, **_: Any) -> dict[str, torch.Tensor]:
        seen.append(messages)
        return {"input_ids": torch.zeros(1, 1)}

    embedding = SimpleNamespace(weight=torch.zeros(1))
    lm = SimpleNamespace(get_input_embeddings=lambda: embedding)
    tokenizer = SimpleNamespace(chat_template="c", apply_chat_template=apply_chat_template)
    Local(lm, tokenizer, Decoding(), None).encode(prompt)
    assert seen == [prompt.messages]


@pytest.fixture
def own_endpoints(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a server in the place of the providers' own endpoints."""

    def put(url: str) -> None:
        for module, path in (("openai_chat", "/v1"), ("anthropic_messages", "")):
            name = f"cradle_lib.detection.engines.{module}.ENDPOINT"
            monkeypatch.setattr(name, f"{url}/own{path}")

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
    engine: EngineName,
) -> None:
    with FaultServer({"ok": lambda n: GOOD[engine]()}) as server:
        found = ask(make_model(engine, f"{server.url}/ok"))
    # Chat: 9 in all, of which 4 read and 3 written. Messages: 2 fresh + 4 read + 3 written.
    counts = (found.tokens_in, found.tokens_cached, found.tokens_written, found.tokens_out)
    assert counts == (9, 4, 3, 2)
    fingerprint = " fp_1" if engine == "openai" else ""
    assert found.served == f"m-2026-01-01{fingerprint}"


@pytest.mark.parametrize("engine", SDKS)
def test_tokens_that_nobody_told_are_unknown_and_not_none_at_all(engine: EngineName) -> None:
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


def picky(engine: EngineName, **rejected: str) -> tuple[Callable[[int], Reply], list[Any], Any]:
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
    engine: EngineName, concurrency: int, tmp_path: Path
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


# ---- How many at once ----------------------------------------------------------------


@pytest.mark.parametrize("engine", SDKS)
def test_a_run_finds_what_a_service_bears(
    engine: EngineName, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    # 1, 2, 4, 5, 5, 5, 5 of 30, and the tail of the last dialogues.
    assert Counter(service.begun)[0.0] == 1
    assert Counter(service.begun)[1.0] == 2
    assert Counter(service.begun)[2.0] == 4
    assert Counter(service.begun)[3.0] == 5


def test_when_a_service_asks_to_wait_nobody_asks_until_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def handler(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(1.0)
        if len(service.begun) == 20:
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
        await asyncio.sleep(1.0)
        # Never room for a second call.
        return response(error(503) if service.flying > 1 else chat())

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


def test_a_missing_sdk_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EngineError, match=r"package anthropic.*-e '\.\[api\]'"):
        make_remote(make_model("anthropic", NOWHERE))


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

MOVES: dict[str, Callable[[EngineName], Reply | str]] = {
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
    engine: EngineName,
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
        if all(p.outcome is not Outcome.FAILED for p in journal.values()) and len(journal) == sum(
            shape
        ):
            break
    assert twice == []
    assert Counter(p.outcome is Outcome.FAILED for p in journal.values()) == {False: sum(shape)}
