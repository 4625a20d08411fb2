"""Requests to services, and the parsing of token counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Options, Outcome, Session, read_journal
from cradle_lib.detection.run import run
from cradle_lib.errors import EngineError

from ...extras.cluster.gated_server import MODEL, GatedServer
from .fault_server import FaultServer, Reply, as_json, chat
from .services import GOOD, SDKS, TEMPLATE, ask, joined_text, long_corpus, make_model, make_remote

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
    prompt = Session(corpus.dialogues[0], TEMPLATE).prompt
    assert prompt
    # OpenAI's own endpoint and Azure have the newer name of the limit.
    for url in (None, "https://x.openai.azure.com/openai/v1"):
        model = make_model("openai", None).model_copy(update={"base_url": url})
        assert make_remote(model).body(prompt)["max_completion_tokens"] == 8


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
    assert counts(GOOD[engine]()) == (9, 4, 3, 2, f"m-2026-01-01{fingerprint}")
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
