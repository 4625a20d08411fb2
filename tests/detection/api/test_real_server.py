"""Both official SDKs against llama.cpp's own server, in this process.

The model is small and answers poorly: shapes, counts and limits are tested, never meaning.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.llama_server import serving
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Options, Outcome, read_journal
from cradle_lib.detection.api.anthropic_messages import AnthropicMessages
from cradle_lib.detection.local.embedded import gguf_file
from cradle_lib.detection.run import run
from cradle_lib.errors import EngineError

from ..dialogues import make_corpus
from .services import KEY, SDKS, ask, make_model

# One worker for all: a server for each would take half a gigabyte each.
pytestmark = pytest.mark.usefixtures("api")


@pytest.fixture(scope="module", autouse=True)
def weights() -> None:
    try:
        gguf_file()
    except EngineError as trouble:
        if "can't download" not in str(trouble):
            raise
        pytest.skip(f"no network and no cached weights: {trouble}")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    # Without its cache: where a prompt is split between cached and new tokens changes
    # llama.cpp's rounding, and with it an answer now and then, even greedily.
    with serving(0, cache=False, key=KEY) as address:
        yield address


@pytest.fixture
def caching_server() -> Iterator[str]:
    with serving(0, key=KEY) as address:
        yield address


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The answers of a journal without times, in an order of their own."""
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    for line in lines:
        del line["seconds"]
    return sorted(lines, key=lambda line: (line["dialogue"], line["turn"]))


def test_a_real_server_answers_alike_through_both_sdks_at_any_concurrency(
    server: str, tmp_path: Path
) -> None:
    words = ["Hello.", "Bye.", "Fine.", "Rain.", "Tea?", "Why?", "Good."]
    corpus = make_corpus(
        [
            [("User", "Hi.", "none"), ("User", "So?", "none")],
            *([("User", w, "none")] for w in words),
        ]
    )
    made: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for engine in SDKS:
        for concurrency in (1, 8):
            model = make_model(engine, server, temperature=0.0, max_new_tokens=4)
            out, options = tmp_path / str(concurrency), Options(concurrency=concurrency)
            path = run(model, corpus, out=out, options=options)
            assert KEY not in path.read_text()
            made[engine, concurrency] = lines_of(path)
    for engine in SDKS:
        first = made[engine, 1]
        assert made[engine, 8] == first
        assert len(first) == 9
        # Over one or the other protocol, the model has read the same text.
        for line, other in zip(first, made["openai", 1], strict=True):
            same = ("key", "answer", "labels", "outcome", "tokens_in", "tokens_out")
            assert [line[name] for name in same] == [other[name] for name in same]
            assert line["outcome"] in (Outcome.OK, Outcome.UNPARSED)
            assert 20 < line["tokens_in"] < 200
            assert 0 < line["tokens_out"] <= 4
            assert line["served"].startswith("smollm2-135m")


@pytest.mark.parametrize("engine", SDKS)
def test_an_answer_that_ends_by_itself_is_whole_and_one_at_the_limit_is_cut(
    server: str, engine: str
) -> None:
    ended = ask(make_model(engine, server, temperature=0.0, max_new_tokens=24))
    assert ended.tokens_out is not None
    assert ended.tokens_out < 24
    assert (ended.outcome, ended.reason) == (Outcome.UNPARSED, None)
    cut = ask(make_model(engine, server, temperature=0.0, max_new_tokens=2))
    assert cut.tokens_out == 2
    assert (cut.outcome, cut.reason) == (Outcome.UNPARSED, "cut at 2 tokens")
    assert ended.answer.startswith(cut.answer)


@pytest.mark.parametrize("engine", SDKS)
def test_tokens_that_a_real_server_had_cached_are_counted(
    caching_server: str, corpus: Corpus, tmp_path: Path, engine: str
) -> None:
    model = make_model(engine, caching_server, temperature=0.0, max_new_tokens=2)
    path = run(model, corpus.subset([0], "one"), out=tmp_path, options=Options(concurrency=1))
    first, second, third = read_journal(path)[1]
    assert first.tokens_cached == 0
    for before, after in ((first, second), (second, third)):
        assert before.tokens_in
        assert after.tokens_in
        assert after.tokens_cached
        # The history is read from the cache, up to where the last question's end was.
        assert 0.5 * before.tokens_in < after.tokens_cached <= before.tokens_in


def test_a_real_server_takes_marks_for_its_cache(
    caching_server: str, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AnthropicMessages, "endpoint", caching_server)
    model = make_model("anthropic", None, temperature=0.0, max_new_tokens=2)
    path = run(model, corpus.subset([0], "one"), out=tmp_path, consent=lambda _: True)
    made = read_journal(path)[1]
    assert {p.outcome for p in made} <= {Outcome.OK, Outcome.UNPARSED}
    assert {p.dropped for p in made} == {()}
    assert made[-1].tokens_cached


@pytest.mark.parametrize("engine", SDKS)
def test_a_real_server_refuses_a_wrong_key_and_an_over_long_prompt(
    server: str, corpus: Corpus, tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = make_corpus([[("User", "word " * 9000, "none")]], name="long")
    found = read_journal(run(make_model(engine, server), long, out=tmp_path))[1]
    assert [p.outcome for p in found] == [Outcome.FAILED]
    assert found[0].reason
    assert found[0].reason.startswith("HTTP 400")
    assert "context" in found[0].reason
    monkeypatch.setenv("TEST_KEY", "sk-wrong")
    refused = r"Tested: the key was not accepted \(HTTP 401\)"
    with pytest.raises(EngineError, match=refused) as fault:
        run(make_model(engine, server), corpus, out=tmp_path)
    assert "sk-wrong" not in str(fault.value)
