"""Money: tokens by kind, worked prices, and a run that stops before its limit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Model, Options, Outcome, Prediction, Progress, read_journal
from cradle_lib.detection.api.dispatch import Patience
from cradle_lib.detection.api.estimate import longest_prompts
from cradle_lib.detection.api.money import Budget, Usage, total, usage_of
from cradle_lib.detection.api.tokens import count_tokens
from cradle_lib.detection.journal import read_answers
from cradle_lib.detection.model import Prices
from cradle_lib.detection.run import run
from cradle_lib.errors import EngineError
from cradle_lib.formatting import dollars
from cradle_lib.prompts import load_template

from ...loopback import Handler, Loopback
from .fault_server import FaultServer, as_json, chat, error
from .services import TEMPLATE, long_corpus

PRICES = {
    "input": 3.0,
    "cached": 0.3,
    "written": 3.75,
    "output": 15.0,
    "date": "2026-01-01",
    "source": "https://prices.example",
}


def make_model(url: str = "http://127.0.0.1:1/v1", **fields: Any) -> Model:
    return Model.model_validate(
        {
            "id": "priced",
            "name": "Priced",
            "group": "open",
            "engine": "openai",
            "weights": "w",
            "base_url": url,
            "decoding": {"max_new_tokens": 10},
            "prices": PRICES,
        }
        | fields
    )


def answered(**tokens: Any) -> Prediction:
    return Prediction("d0000", 0, "k", "none", 0, Outcome.OK, **tokens)


def test_each_kind_of_token_has_its_own_price() -> None:
    # 1000 x 3 + 8000 x 0.3 + 2000 x 3.75 + 100 x 15 = 3000 + 2400 + 7500 + 1500 = 14400,
    # all per million.
    usage = Usage(fresh=1000, cached=8000, written=2000, output=100)
    assert usage.cost(Prices.model_validate(PRICES)) == pytest.approx(0.0144)
    # Without a cache: 11000 x 3 + 1500 = 34500.
    assert usage.uncached.cost(Prices.model_validate(PRICES)) == pytest.approx(0.0345)


def test_a_kind_without_a_price_is_charged_as_input() -> None:
    prices = Prices.model_validate(PRICES | {"cached": None, "written": None})
    usage = Usage(fresh=1, cached=10, written=100, output=0)
    assert usage.cost(prices) == pytest.approx(111 * 3 / 1e6)


def test_cached_and_written_tokens_are_part_of_the_prompts() -> None:
    full = answered(tokens_in=100, tokens_cached=60, tokens_written=30, tokens_out=5)
    assert usage_of(full) == Usage(fresh=10, cached=60, written=30, output=5)
    assert usage_of(answered(tokens_in=100, tokens_out=5)) == Usage(fresh=100, output=5)
    assert usage_of(answered()) is None


counts = st.builds(Usage, *[st.integers(0, 10**6)] * 4)


@settings(deadline=None, max_examples=50)
@given(st.lists(counts, max_size=5))
def test_the_cost_of_a_sum_is_the_sum_of_costs(usages: list[Usage]) -> None:
    prices = Prices.model_validate(PRICES)
    assert total(usages).cost(prices) == pytest.approx(sum(u.cost(prices) for u in usages))
    assert total(usages).prompt == sum(u.prompt for u in usages)


def test_small_amounts_can_be_told_apart() -> None:
    assert [dollars(x) for x in (0, 0.00424, 0.424, 1, 1234.5)] == [
        "$0.00",
        "$0.0042",
        "$0.42",
        "$1.00",
        "$1,234.50",
    ]


def test_a_budget_keeps_back_what_the_calls_in_flight_may_cost() -> None:
    # 744 bytes and 256 around them are at most 1000 tokens, dearest when written:
    # 1000 x 3.75 + 10 x 15 = 3900 per million, so $0.0039 a call.
    budget = Budget(make_model(), 0.02, {("d0000", 0): 744, ("d0000", 1): 44})
    assert budget.dearest == pytest.approx(0.0039)
    # $0.02 has room for 5 of them at once.
    assert budget.concurrency(8) == 5
    assert budget.concurrency(2) == 2
    budget.check()
    budget.add(answered(tokens_in=1000, tokens_out=0))
    budget.add(answered(tokens_in=1000, tokens_out=0))
    budget.add(answered(tokens_in=1000, tokens_out=0))
    # $0.009 spent, $0.011 left: two calls fit, three do not.
    assert not budget.exhausted
    assert budget.concurrency(8) == 2
    budget.add(answered(tokens_in=1100, tokens_out=0))
    assert budget.spent == pytest.approx(0.0123)
    # $0.0077 are left, and two calls may cost $0.0078.
    assert budget.exhausted
    budget.add(answered(tokens_in=1300, tokens_out=0))
    assert "counted here" not in budget.state
    with pytest.raises(EngineError, match=r"\$0\.016 of --max-cost \$0\.02 are spent.*\$0\.0039"):
        budget.check()


def test_what_a_service_does_not_say_is_counted_upwards() -> None:
    prompts = {("d0000", 0): 744, ("d0000", 1): 44}

    def spent(prediction: Prediction) -> float:
        budget = Budget(make_model(), 1.0, prompts)
        budget.add(prediction)
        return budget.spent

    assert spent(answered()) == pytest.approx(0.0039)
    # The other turn has at most 300 tokens: 300 x 3.75 + 10 x 15 = 1275.
    assert spent(replace(answered(), turn=1)) == pytest.approx(0.001275)
    # Of a turn that is not known, the longest; of half an answer, all of it.
    assert spent(replace(answered(), dialogue="other")) == pytest.approx(0.0039)
    assert spent(answered(tokens_in=10)) == pytest.approx(0.0039)
    # A service that ignores the limit: 34 bytes are at most 34 tokens, 24 more than 10.
    long = replace(answered(), answer="confirm_SI_active_ongoing; some \u00e9")
    assert len(long.answer.encode()) == 34
    assert spent(long) == pytest.approx(0.0039 + 24 * 15 / 1e6)
    budget = Budget(make_model(), 1.0, prompts, [answered(), answered(tokens_in=9, tokens_out=1)])
    assert budget.counted == pytest.approx(0.0039)
    assert "($0.0039 of it counted here, upwards, because" in budget.state


def test_a_call_that_was_dearer_than_could_be_known_is_reckoned_with_from_then_on() -> None:
    # The service puts a page of its own before each message.
    budget = Budget(make_model(), 1.0, {("d0000", 0): 744})
    budget.add(answered(tokens_in=9000, tokens_out=1))
    assert budget.dearest == pytest.approx((9000 * 3 + 15) / 1e6)


ENCODINGS = (
    "none",
    "alert_past ",
    "\U0001f642\u200d\u2642",
    "\u5fc3\u914d",
    "\n\t  \n",
    "zq7#\u0301",
)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(max_size=6) | st.sampled_from(ENCODINGS), max_size=20).map("".join))
def test_no_text_has_more_tokens_than_bytes(text: str) -> None:
    with suppress(UnicodeEncodeError):
        assert count_tokens(text) <= len(text.encode())


def test_a_limit_without_prices_is_refused() -> None:
    with pytest.raises(EngineError, match="--max-cost needs prices, and the entry priced"):
        Budget(make_model(prices=None), 1.0, {})


@contextmanager
def service() -> Iterator[tuple[str, list[str]]]:
    """A service that answers ``none`` for 1000 prompt tokens; keeps what it was asked."""
    asked: list[str] = []
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "w",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "none"},
            }
        ],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 1, "total_tokens": 1001},
    }

    class Answering(Handler):
        def do_POST(self) -> None:
            asked.append(self.body().decode())
            self.send_json(body)

    with Loopback(Answering) as server:
        yield f"{server.url}/v1", asked


def test_a_run_stops_before_its_limit_and_goes_on_where_it_stopped(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with service() as (url, asked):
        model = make_model(url)
        # An answer costs (1000 x 3 + 15) / 1e6 = $0.003015. A call may cost more: the instruction
        # alone has thousands of characters.
        prompts = longest_prompts(corpus.dialogues, load_template("turn"), "self")
        limit = 3.5 * 0.003015 + Budget(model, 1.0, prompts).dearest
        options = Options(concurrency=8)
        with pytest.raises(EngineError, match=r"--max-cost.*answers so far are kept") as stopped:
            run(model, corpus, out=tmp_path, options=options, max_cost=limit)
        assert "\n" not in str(stopped.value)
        path = tmp_path / "tiny" / "priced.jsonl"
        before = len(read_journal(path)[1])
        assert 1 <= before < 6
        assert before == len(asked)
        spent = total(usage_of(a) or Usage() for a in read_answers(path)[1])
        assert model.prices
        assert spent.cost(model.prices) <= limit
        run(model, corpus, out=tmp_path, options=options, max_cost=1.0)
        assert len(read_journal(path)[1]) == len(asked) == len(set(asked)) == 6
        # Finished: however low the limit, there is nothing left to pay for.
        run(model, corpus, out=tmp_path, options=options, max_cost=0.0)
        assert len(asked) == 6


def test_a_start_that_can_afford_no_call_asks_nothing(corpus: Corpus, tmp_path: Path) -> None:
    with service() as (url, asked):
        with pytest.raises(EngineError, match=r"\$0\.00 of --max-cost \$0\.00 are spent"):
            run(make_model(url), corpus, out=tmp_path, max_cost=0.0)
        assert asked == []


# ---- A service that does not say what it used, or says what can't be -----------------

USAGES: dict[str, Any] = {
    "none": None,
    "empty": {},
    "zero": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    "negative": {"prompt_tokens": -4000, "completion_tokens": -50, "total_tokens": -4050},
    "negative answer": {"prompt_tokens": 4000, "completion_tokens": -50, "total_tokens": 3950},
    "absurd": {"prompt_tokens": 10**15, "completion_tokens": 1, "total_tokens": 10**15 + 1},
    "more cached than sent": {
        "prompt_tokens": 9,
        "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 10**6},
    },
    "text": {"prompt_tokens": "9", "completion_tokens": "1"},
}


@pytest.mark.parametrize("name", USAGES)
@pytest.mark.usefixtures("api")
def test_a_limit_holds_where_a_service_tells_nothing_or_nonsense(name: str, tmp_path: Path) -> None:
    reply = json.loads(chat()[2]) | {"usage": USAGES[name]}
    many = long_corpus(40, 4)
    with FaultServer({"mute": lambda n: as_json(reply)}) as server:
        model = make_model(f"{server.url}/mute/v1", prompt="short")
        each = Budget(model, 1.0, longest_prompts(many.dialogues, TEMPLATE, "self")).dearest
        limit = 40 * each
        with pytest.raises(EngineError, match=r"counted here, upwards, because.*are kept"):
            run(model, many, out=tmp_path, options=Options(concurrency=4), max_cost=limit)
        calls = server.calls["mute"]
        # None of them can have cost more than the dearest, and most cost less.
        assert 40 - 4 <= calls < 160
        path = tmp_path / "tiny" / "priced.jsonl"
        answers = read_answers(path)[1]
        assert len(answers) == calls
        # What was counted here is nobody's word, and stands nowhere.
        assert {(a.tokens_in, a.tokens_cached, a.tokens_out) for a in answers} == {(None,) * 3}
        # A later start knows what the first one spent.
        with pytest.raises(EngineError, match="Give a higher limit to go on"):
            run(model, many, out=tmp_path, max_cost=limit * 0.9)
        assert server.calls["mute"] == calls


@pytest.mark.usefixtures("api")
def test_calls_that_may_be_charged_and_bring_nothing_are_paid_from_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = Patience(attempts=6, deadline=20.0, base=0.0, failures=99)
    monkeypatch.setattr("cradle_lib.detection.api.client.Patience.of", lambda _: patience)
    many = long_corpus(10, 1)
    with FaultServer({"down": lambda n: error(500), "busy": lambda n: error(429)}) as server:
        model = make_model(f"{server.url}/down/v1", prompt="short")
        prompts = longest_prompts(many.dialogues, TEMPLATE, "self")
        limit = 4.5 * Budget(model, 1.0, prompts).dearest
        options = Options(concurrency=1)
        with pytest.raises(EngineError, match=r"--max-cost .* are spent \(.*counted here"):
            run(model, many, out=tmp_path, options=options, max_cost=limit)
        assert server.calls["down"] == 4
        path = tmp_path / "tiny" / "priced.jsonl"
        # Each of them stands in the journal, as what it was, and all belong to one question.
        assert [a.outcome for a in read_answers(path)[1]] == [Outcome.FAILED] * 4
        assert len({a.key for a in read_answers(path)[1]}) == 1
        assert len(read_journal(path)[1]) == 1
        with pytest.raises(EngineError, match="Give a higher limit to go on"):
            run(model, many, out=tmp_path, options=options, max_cost=limit)
        assert server.calls["down"] == 4
        # A call that was turned away costs nothing.
        busy = make_model(f"{server.url}/busy/v1", prompt="short", id="busy")
        path = run(busy, many.subset([0], "one"), out=tmp_path, options=options, max_cost=limit)
        assert server.calls["busy"] == 6
        assert len(read_answers(path)[1]) == 1


@pytest.mark.usefixtures("api")
def test_an_answer_after_calls_that_brought_nothing_stands_for_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = Patience(attempts=6, deadline=20.0, base=0.0)
    monkeypatch.setattr("cradle_lib.detection.api.client.Patience.of", lambda _: patience)
    many = long_corpus(3, 3)
    seen: list[Progress] = []
    with FaultServer({"flaky": lambda n: error(500) if n % 3 else chat()}) as server:
        model = make_model(f"{server.url}/flaky/v1", prompt="short")
        options = Options(concurrency=1)
        path = run(model, many, out=tmp_path, options=options, max_cost=1.0, progress=seen.append)
        calls = server.calls["flaky"]
        run(model, many, out=tmp_path)
        assert server.calls["flaky"] == calls
    answers = read_answers(path)[1]
    assert len(answers) == calls == 1 + 8 * 3
    assert [p.outcome for p in read_journal(path)[1]] == [Outcome.OK] * 9
    # Calls that brought nothing are no progress.
    assert [p.done for p in seen] == list(range(10))
