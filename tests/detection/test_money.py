"""Money: tokens by kind, worked prices, and a run that stops before its limit."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Model, Options, Outcome, Prediction, read_journal, run
from cradle_lib.detection.journal import read_answers
from cradle_lib.detection.money import Budget, Usage, dollars, total, usage_of
from cradle_lib.detection.registry import Prices
from cradle_lib.errors import EngineError

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
    # 2999 characters are at most 1000 tokens, dearest when written: 1000 x 3.75 + 10 x 15 = 3900
    # per million, so $0.0039 a call.
    budget = Budget(make_model(), 0.02, longest=2999)
    assert budget.dearest == pytest.approx(0.0039)
    # $0.02 has room for 5 of them at once.
    assert budget.concurrency(8) == 5
    assert budget.concurrency(2) == 2
    budget.check()
    budget.add(answered(tokens_in=4000, tokens_out=0))
    # $0.012 spent, $0.008 left: two calls fit, three do not.
    assert not budget.exhausted
    assert budget.concurrency(8) == 2
    budget.add(answered())
    assert budget.spent == pytest.approx(0.012)
    budget.add(answered(tokens_in=2000, tokens_out=0))
    assert budget.exhausted
    with pytest.raises(EngineError, match=r"\$0\.018 of --max-cost \$0\.02 are spent.*\$0\.0039"):
        budget.check()


def test_a_limit_without_prices_is_refused() -> None:
    with pytest.raises(EngineError, match="--max-cost needs prices, and the entry priced"):
        Budget(make_model(prices=None), 1.0, longest=10)


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
        "usage": {"prompt_tokens": 1000, "completion_tokens": 0, "total_tokens": 1000},
    }

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["content-length"])).decode())
            content = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_run_stops_before_its_limit_and_goes_on_where_it_stopped(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with service() as (url, asked):
        model = make_model(url)
        # An answer costs 1000 x 3 / 1e6 = $0.003. A call may cost more: the instruction alone
        # has thousands of characters.
        dearest = Budget(model, 1.0, longest=9000).dearest
        limit = 3 * 0.003 + 1.5 * dearest
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
