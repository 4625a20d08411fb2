"""Estimates: tokens as tiktoken counts them, caching as a slow twin simulates it."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import Any

import pytest
import tiktoken
import tiktoken_ext.openai_public
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import Answer, Model, Session, estimate_cost, load_registry
from cradle_lib.detection.api.estimate import estimate_costs, longest_prompts
from cradle_lib.detection.api.money import Usage
from cradle_lib.detection.api.tokens import TOKENIZER, VOCABULARY, count_tokens, last_seam
from cradle_lib.labels import LABELS, format_mask
from cradle_lib.prompts import load_template

from ..dialogues import make_corpus

URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> tiktoken.Encoding:
    """The encoding as tiktoken builds it, from a file that it checks by its own checksum."""
    folder = tmp_path_factory.mktemp("tiktoken")
    content = gzip.decompress(VOCABULARY.read_bytes())
    (folder / hashlib.sha1(URL.encode()).hexdigest()).write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        return tiktoken.Encoding(**tiktoken_ext.openai_public.o200k_base())


def test_the_encoding_is_the_one_of_gpt_5() -> None:
    assert tiktoken.encoding_name_for_model("gpt-5") == TOKENIZER
    assert load_registry()["gpt-5.1"].tokenizer == TOKENIZER


def test_tokens_are_counted_as_tiktoken_counts_them(official: tiktoken.Encoding) -> None:
    texts = [
        "",
        load_template("turn").text,
        "It's 12345 o'clock.\n\n\n  User: WE'LL see/\n/path ",
        "<|endoftext|> is text here",
        "\u00e4\u00f6\u00fc \u4f60\u597d \U0001f642\r\n\t.",
    ]
    for text in texts:
        assert count_tokens(text) == len(official.encode_ordinary(text)), text


@settings(deadline=None, max_examples=100)
@given(st.text(st.sampled_from("aZ9'/.\n\r\t #:\u00e4"), max_size=40), st.integers(0, 40))
def test_no_token_reaches_over_a_seam(text: str, end: int) -> None:
    seam = last_seam(text, end)
    assert 0 <= seam <= max(end, 0)
    assert count_tokens(text[:seam]) + count_tokens(text[seam:]) == count_tokens(text)


def twin(
    corpus: Corpus, *, charged: bool, minimum: int, step: int, history: Any = "self"
) -> dict[tuple[str, int], Usage]:
    """The slow way: every prompt counted whole, its cacheable part found in its text."""
    template = load_template("turn")
    calls: dict[tuple[str, int], Usage] = {}
    instruction = count_tokens(template.text.split("{history}")[0])
    first = True
    for dialogue in corpus:
        kept = 0 if first else instruction
        for turn in dialogue.user_turns:
            first = False
            session = Session(dialogue, template, history)
            while session.prompt and session.prompt.turn != turn.turn_id:
                gold = next(t for t in dialogue.turns if t.turn_id == session.prompt.turn)
                session.answer(Answer(format_mask(gold.mask)))
            prompt = session.prompt
            assert prompt
            head = prompt.text[: prompt.text.rindex("# Current turn")].removesuffix("\n\n")
            if len(head) < prompt.static:
                head = prompt.text[: prompt.static]
            prefix, whole = count_tokens(head), count_tokens(prompt.text)
            read = kept if kept >= minimum else 0
            read -= read % step
            written = prefix - read if charged and prefix >= minimum else 0
            output = count_tokens(format_mask(turn.mask))
            usage = Usage(whole - read - written, read, written, output)
            calls[dialogue.id, turn.turn_id] = usage
            kept = prefix
    return calls


def make_model(*, written: float | None, minimum: int, step: int) -> Model:
    prices = {"input": 1.0, "output": 2.0, "written": written, "date": "2026-01-01", "source": "s"}
    return Model.model_validate(
        {
            "id": "m",
            "name": "M",
            "group": "open",
            "engine": "openai",
            "weights": "w",
            "base_url": "http://127.0.0.1:1/v1",
            "decoding": {"max_new_tokens": 256},
            "prices": prices,
            "caching": {"minimum": minimum, "step": step},
        }
    )


@pytest.mark.parametrize("history", ["self", "none"])
@pytest.mark.parametrize(
    ("written", "minimum", "step"),
    [(None, 0, 1), (None, 1024, 128), (1.25, 1024, 1), (1.25, 2060, 1), (None, 100_000, 1)],
)
def test_an_estimate_is_what_a_slow_twin_counts(
    corpus: Corpus, written: float | None, minimum: int, step: int, history: Any
) -> None:
    model = make_model(written=written, minimum=minimum, step=step)
    found = estimate_cost(model, corpus, history=history)
    slow = twin(corpus, charged=written is not None, minimum=minimum, step=step, history=history)
    assert found.calls == slow


def test_an_estimate_on_the_surrogate_is_what_a_slow_twin_counts() -> None:
    corpus = load_corpus("surrogate")
    part = corpus.subset([3, 71], corpus.name)
    found = estimate_cost(load_registry()["claude-4.5-sonnet"], part)
    assert found.calls == twin(part, charged=True, minimum=1024, step=1)
    assert set(found.calls) == {(d.id, t.turn_id) for d in part for t in d.user_turns}


def test_a_dialogue_without_history_begins_with_the_instruction_from_the_cache() -> None:
    corpus = make_corpus([[("User", "Hello.", "none")]] * 2)
    model = make_model(written=None, minimum=0, step=1)
    first, second = estimate_cost(model, corpus).calls.values()
    assert first.cached == 0
    assert second.cached == count_tokens(load_template("turn").text.split("{history}")[0])
    assert first.prompt == second.prompt


def test_the_dearest_outcome_costs_no_less_than_any_other(corpus: Corpus) -> None:
    for written in (None, 1.25):
        found = estimate_cost(make_model(written=written, minimum=0, step=1), corpus)
        assert found.cost is not None
        assert found.uncached_cost is not None
        assert found.highest_cost is not None
        assert found.highest_cost >= max(found.cost, found.uncached_cost)
        assert found.longest_output == 6 * 256
    # 6 calls: prompts at $1, answers of 256 tokens at $2, per million.
    plain = estimate_cost(make_model(written=None, minimum=0, step=1), corpus)
    assert plain.highest_cost == pytest.approx((plain.usage.prompt + 6 * 256 * 2) / 1e6)


def test_an_estimate_covers_the_dialogues_that_a_run_would_choose(corpus: Corpus) -> None:
    model = make_model(written=None, minimum=0, step=1)
    assert {place[0] for place in estimate_cost(model, corpus, limit=1).calls} == {"d0000"}
    assert len({p[0] for p in estimate_cost(model, corpus, sample=2).calls}) == 2
    found = estimate_cost(model, corpus)
    part = found.restricted([("d0000", 0), ("d0009", 1)])
    assert dict(part.calls) == {("d0000", 0): found.calls["d0000", 0]}


def test_an_estimate_says_what_it_rests_on(corpus: Corpus) -> None:
    counted, charged = estimate_cost(load_registry()["gpt-5.1"], corpus).assumptions
    assert "o200k_base (the model's own)" in counted
    assert "Prices of 2026-" in charged
    counted, charged = estimate_cost(load_registry()["qwen3-32b-vllm"], corpus).assumptions
    assert "not the model's own, but near" in counted
    assert "tokens only" in charged
    assert estimate_cost(load_registry()["qwen3-32b-vllm"], corpus).cost is None


def test_a_damaged_vocabulary_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cradle_lib.detection.api import tokens
    from cradle_lib.errors import EngineError

    for content, message in (
        (b"no gzip", "can't be read"),
        (gzip.compress(b"aGk= 0\n"), "is not the vocabulary of o200k_base"),
    ):
        path = tmp_path / "v.gz"
        path.write_bytes(content)
        monkeypatch.setattr(tokens, "VOCABULARY", path)
        with pytest.raises(EngineError, match=message):
            tokens.encoding.__wrapped__()


def test_no_prompt_of_a_run_is_longer_than_was_reckoned(corpus: Corpus) -> None:
    template = load_template("turn")
    assert longest_prompts([], template, "self") == {}
    found = longest_prompts(corpus.dialogues, template, "self")
    assert found.keys() == {(d.id, t.turn_id) for d in corpus.dialogues for t in d.user_turns}
    for answer in ("none", "; ".join(LABELS), "alert_past", "what?"):
        for dialogue in corpus.dialogues:
            session = Session(dialogue, template)
            while (prompt := session.prompt) is not None:
                assert len(prompt.text.encode()) <= found[prompt.dialogue, prompt.turn]
                session.answer(Answer(answer))
    # What one's own tags can't lengthen is exact.
    first = Session(corpus.dialogues[0], template).prompt
    assert first
    assert found[first.dialogue, first.turn] == len(first.text.encode())


def test_the_frame_of_costs_adds_up_by_its_own_tokens_and_prices() -> None:
    rows = [("User", "Hello.", "none"), ("Listener", "Hi.", "none"), ("User", "Well.", "none")]
    corpus = make_corpus([rows] * 6)
    frame = estimate_costs(corpus)
    assert frame["system"].tolist() == ["GPT-5.1", "Claude-4.5-Sonnet", "Gemini-3-Flash"]
    assert (frame["calls"] == sum(len(dialogue.user_turns) for dialogue in corpus)).all()
    kinds = ("fresh", "cached", "written", "output")
    tokens = frame[[f"{kind}_tokens" for kind in kinds]].to_numpy(dtype=float)
    prices = frame[[f"{kind}_price" for kind in ("input", "cached", "written", "output")]]
    # What has no price of its own is charged as input.
    paid = prices.apply(lambda column: column.fillna(prices["input_price"])).to_numpy()
    assert frame["cost"].tolist() == pytest.approx((tokens * paid).sum(axis=1) / 1e6)
    fresh = tokens[:, :3].sum(axis=1) * paid[:, 0] + tokens[:, 3] * paid[:, 3]
    assert frame["uncached_cost"].tolist() == pytest.approx(fresh / 1e6)
    assert (frame["highest_cost"] > frame["uncached_cost"]).all()
    shown = frame.set_index("system")
    assert shown.loc["Claude-4.5-Sonnet", "written_price"] == 3.75
    assert shown["written_price"].isna().tolist() == [True, False, True]
    assert shown["own_tokenizer"].tolist() == [True, False, False]
    assert shown["source"].str.startswith("https://").all()
    assert shown["date"].str.fullmatch(r"\d{4}-\d\d-\d\d").all()


def test_models_without_prices_are_left_out_of_the_frame_of_costs() -> None:
    corpus = make_corpus([[("User", "Hello.", "none")]])
    frame = estimate_costs(corpus, ["keyword", "gpt-5.1"])
    assert frame["system"].tolist() == ["GPT-5.1"]
    none = estimate_costs(corpus, ["keyword"])
    assert none.empty
    assert none.columns.tolist() == frame.columns.tolist()
