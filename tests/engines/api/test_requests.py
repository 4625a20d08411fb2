"""Requests to services, and the parsing of token counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Options, Outcome, Prediction, Session, read_journal, resolve
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError, RegistryError

from ...extras.cluster.gated_server import MODEL, GatedServer
from .fault_server import FaultServer, Reply, as_json, chat
from .services import (
    GOOD,
    SDKS,
    TEMPLATE,
    ask,
    joined_text,
    long_corpus,
    make_model,
    make_remote,
    sessions,
)

pytestmark = pytest.mark.usefixtures("api")


@pytest.mark.parametrize("engine", SDKS)
def test_a_request_has_prompt_and_decoding_settings(engine: str, service: FaultServer) -> None:
    name = service.add(lambda n: GOOD[engine]())
    ask(make_model(engine, f"{service.url}/{name}", temperature=0.0, seed=3))
    ask(make_model(engine, f"{service.url}/{name}"))
    least = {
        "model": "smollm2-135m",
        "messages": [{"role": "user", "content": "Label.\nUser: Hello."}],
        "max_tokens": 8,
    }
    assert service.seen == [least | {"temperature": 0.0, "seed": 3}, least]
    assert service.headers[0]["authorization"] == "Bearer sk-planted-0123456789"
    if engine == "anthropic":
        assert service.headers[0]["anthropic-version"] == "2023-06-01"


def test_cache_control_marks_the_static_part_and_the_history(corpus: Corpus) -> None:
    session = Session(corpus.dialogues[0], TEMPLATE)
    remote = make_remote(make_model("anthropic", None))
    before: list[str] = []
    for _ in range(3):
        assert session.prompt
        (only,) = remote.body(session.prompt)["messages"]
        blocks = [block["text"] for block in only["content"]]
        assert joined_text(only["content"]) == session.prompt.text
        assert all(block.strip() for block in blocks)
        marked = [i for i, block in enumerate(only["content"]) if "cache_control" in block]
        assert marked == sorted({0, len(blocks) - 2})
        # Earlier blocks are unchanged, so that the cache applies.
        assert blocks[: len(before)] == before
        before = blocks[:-1]
        session.answer(remote.read(json.loads(GOOD["anthropic"]()[2])))
    assert before[:2] == [
        "Label.\n",
        "User: Hi, rough week at work.\nMODEL_TAG: none\nListener: What happened?",
    ]


@pytest.mark.parametrize("engine", SDKS)
def test_token_counts_of_both_sdks_are_comparable_and_the_served_model_is_stored(
    engine: str, service: FaultServer
) -> None:
    def counts(reply: Reply) -> tuple[Any, ...]:
        found = ask(make_model(engine, f"{service.url}/{service.add(lambda n: reply)}"))
        assert found.outcome is Outcome.OK
        tokens = found.tokens_in, found.tokens_cached, found.tokens_written, found.tokens_out
        return *tokens, found.served

    # Chat: 9 tokens, of which 4 cached and 3 written. Messages: 2 fresh + 4 cached + 3 written.
    fingerprint = " fp_1" if engine == "openai" else ""
    assert counts(GOOD[engine]()) == (9, 4, 3, 2, f"smollm2-135m-2026-01-01{fingerprint}")
    unknown = {"usage": None, "model": None, "system_fingerprint": None}
    bare = as_json(json.loads(GOOD[engine]()[2]) | unknown)
    assert counts(bare) == (None, None, None, None, None)


def test_reasoning_tokens_are_derived_from_the_total(service: FaultServer) -> None:
    # As Gemini does: of 81 tokens, 21 are prompt and 5 answer, so that 55 are reasoning.
    usage = {"prompt_tokens": 21, "completion_tokens": 5, "total_tokens": 81}
    name = service.add(lambda n: as_json(json.loads(chat()[2]) | {"usage": usage}))
    assert ask(make_model("openai", f"{service.url}/{name}")).tokens_out == 60


# ---- Local servers -------------------------------------------------------------------


def test_a_server_with_another_model_is_refused_before_any_question(tmp_path: Path) -> None:
    corpus, path = long_corpus(3, 2), tmp_path / "j.jsonl"
    with GatedServer() as server:
        model = make_model("openai", server.url.removesuffix("/v1"))
        with pytest.raises(EngineError) as refused:
            run(model, corpus, out=path)
        assert f"serves {MODEL}, but m-openai asks for smollm2-135m." in str(refused.value)
        assert read_journal(path)[1] == []
        # The same journal can be resumed with the right model.
        right = model.model_copy(update={"weights": MODEL})
        run(right, corpus, out=path, options=Options(concurrency=1))
    assert len(read_journal(path)[1]) == 6


# ---- The limit of an answer's length -------------------------------------------------

OPENAI = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_"
)
UNSUPPORTED: list[tuple[int, Any]] = [
    (400, {"error": {"message": f"{OPENAI}tokens' instead.", "code": "unsupported_parameter"}}),
    (400, {"error": {"message": "Unsupported parameter", "param": "max_tokens"}}),
    (400, {"error": {"message": "max_tokens is deprecated: use max_completion_tokens"}}),
    (422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "max_tokens"], "msg": "no"}]}),
    (200, {"error": {"code": 400, "message": f"{OPENAI}tokens' instead."}}),
]


@pytest.mark.parametrize(("status", "body"), UNSUPPORTED)
def test_a_refused_name_of_the_limit_is_replaced_once_and_recorded(
    status: int, body: Any, service: FaultServer, tmp_path: Path
) -> None:
    def reply(attempt: int) -> Reply:
        return as_json(body, status) if "max_tokens" in service.seen[attempt] else chat()

    notices: list[str] = []
    options = Options(notice=notices.append)
    model = make_model("openai", f"{service.url}/{service.add(reply)}")
    path = run(model, long_corpus(3, 2), out=tmp_path, options=options)
    answers = read_journal(path)[1]
    assert [one.outcome for one in answers] == [Outcome.OK] * 6
    assert {one.limited_by for one in answers} == {"max_completion_tokens"}
    limits = [(body.get("max_tokens"), body.get("max_completion_tokens")) for body in service.seen]
    assert limits == [(8, None)] + [(None, 8)] * 6
    assert len(notices) == 1
    assert "does not accept max_tokens for this model. The limit of an answer's" in notices[0]


def test_a_name_is_replaced_only_once_and_only_if_it_is_not_supported(service: FaultServer) -> None:
    both = f"{OPENAI}tokens' instead. Use 'max_tokens' instead."
    for text, calls in (
        (both, 3),
        ("'max_tokens' or 'max_completion_tokens' is too large: 9000 > 4096 - 500.", 2),
        ("Unsupported parameter: 'temperature' is not supported with this model.", 2),
    ):
        name = service.add(lambda n, text=text: as_json({"error": {"message": text}}, 400))
        found: list[Prediction] = []
        remote = make_remote(make_model("openai", f"{service.url}/{name}"))
        remote.answer_all(sessions(long_corpus(1, 2)), found.append)
        assert [one.outcome for one in found] == [Outcome.FAILED] * 2
        assert service.calls[name] == calls


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_an_entry_chooses_the_name_of_the_limit(name: str, service: FaultServer) -> None:
    text = f"Unsupported parameter: {name}"
    path = service.add(lambda n: as_json({"error": {"message": text}}, 400))
    address = f"{service.url}/{path}/v1"
    model = resolve("openai:smollm2-135m", base_url=address, prompt="brief", extra={name: 64})
    assert model.decoding
    assert model.decoding.max_new_tokens == 64
    assert ask(model).outcome is Outcome.FAILED
    sent = [{key: body[key] for key in body if key.startswith("max_")} for body in service.seen]
    assert sent == [{name: 64}]
    for extra in ({name: 64}, {"max_tokens": 32, "max_completion_tokens": 32}):
        with pytest.raises(RegistryError, match=rf"'extra' sets .*{name}.*'max_new_tokens' \(32\)"):
            resolve("openai:m", max_new_tokens=32, extra=extra)


def test_the_name_of_the_limit_depends_on_the_host_at_first() -> None:
    for url, name in (
        (None, "max_completion_tokens"),
        ("https://x.openai.azure.com/openai/v1", "max_completion_tokens"),
        ("https://x.services.ai.azure.com/openai/v1", "max_tokens"),
    ):
        model = make_model("openai", None).model_copy(update={"base_url": url})
        prompt = Session(long_corpus(1, 1).dialogues[0], TEMPLATE).prompt
        assert prompt
        assert make_remote(model).body(prompt)[name] == 8
