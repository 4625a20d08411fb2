"""Both official SDKs with llama.cpp's server, in this process.

The model is small and answers poorly: only formats, counts and limits are tested.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.llama_server import serving
from cradle_engines.api.anthropic_messages import AnthropicMessages
from cradle_engines.local.embedded import gguf_file
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Options, Outcome, read_journal
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError

from ...detection.dialogues import make_corpus
from .services import KEY, SDKS, ask, make_model

pytestmark = pytest.mark.usefixtures("api")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    try:
        gguf_file()
    except EngineError as trouble:
        if "can't download" not in str(trouble):
            raise
        pytest.skip(f"no network and no cached weights: {trouble}")
    # Without the prompt cache, because the number of cached tokens changes llama.cpp's rounding,
    # and with it some greedy answers.
    with serving(0, cache=False, key=KEY) as address:
        yield address


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Returns the answers of a journal without times and models, in the order of the corpus."""
    names = ("dialogue", "turn", "key", "answer", "labels", "outcome", "tokens_in", "tokens_out")
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert all(line["served"].startswith("smollm2-135m") for line in lines)
    kept = [{name: line.get(name) for name in names} for line in lines]
    return sorted(kept, key=lambda line: (line["dialogue"], line["turn"]))


def test_both_sdks_give_equal_answers_of_a_real_server(server: str, tmp_path: Path) -> None:
    texts = (("Hi.", "So?"), ("Tea?",))
    corpus = make_corpus([[("User", text, "none") for text in each] for each in texts])
    made = []
    for engine, concurrency in (("openai", 1), ("anthropic", 2)):
        model = make_model(engine, server, temperature=0.0, max_new_tokens=4)
        out, options = tmp_path / str(concurrency), Options(concurrency=concurrency)
        made.append(lines_of(run(model, corpus, out=out, options=options)))
    assert made[0] == made[1]
    assert len(made[0]) == 3
    for line in made[0]:
        assert line["outcome"] in (Outcome.OK, Outcome.UNPARSED)
        assert 20 < line["tokens_in"] < 200
        assert 0 < line["tokens_out"] <= 4


@pytest.mark.parametrize("engine", SDKS)
def test_an_answer_at_the_token_limit_is_cut(server: str, engine: str) -> None:
    ended = ask(make_model(engine, server, temperature=0.0, max_new_tokens=16))
    assert (ended.outcome, ended.reason, ended.ending) == (Outcome.UNPARSED, None, None)
    cut = ask(make_model(engine, server, temperature=0.0, max_new_tokens=2))
    found = (cut.tokens_out, cut.outcome, cut.reason, cut.ending)
    assert found == (2, Outcome.UNPARSED, "cut at 2 tokens", "cut")
    assert ended.answer.startswith(cut.answer)


@pytest.mark.parametrize("engine", SDKS)
def test_a_real_server_refuses_a_wrong_key_and_a_long_prompt(
    server: str, corpus: Corpus, tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = make_corpus([[("User", "word " * 9000, "none")]], name="long")
    [found] = read_journal(run(make_model(engine, server), long, out=tmp_path))[1]
    assert found.outcome is Outcome.FAILED
    assert str(found.reason).startswith("HTTP 400")
    assert "context" in str(found.reason)
    monkeypatch.setenv("TEST_KEY", "sk-wrong")
    with pytest.raises(EngineError, match=r"Tested: the key was not accepted \(HTTP 401\)"):
        run(make_model(engine, server), corpus, out=tmp_path)


def test_cached_tokens_of_a_real_server_are_counted(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(0, key=KEY) as address:
        monkeypatch.setattr(AnthropicMessages, "endpoint", address)
        model = make_model("anthropic", None, temperature=0.0, max_new_tokens=2)
        options = Options(concurrency=1)
        one = corpus.subset([0], "one")
        path = run(model, one, out=tmp_path, options=replace(options, consent=lambda _: True))
    first, second, *_ = read_journal(path)[1]
    assert first.tokens_cached == 0
    # The cache has the prefix that both prompts share.
    assert first.tokens_in
    assert 0.5 * first.tokens_in < (second.tokens_cached or 0) <= first.tokens_in
