"""Costs of usage, and runs that stop before their cost limit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cradle_engines.api.dispatch import RetryPolicy
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Model, Options, Outcome, Prediction, Progress, read_journal
from cradle_lib.detection.models.model import Prices
from cradle_lib.detection.runs.costs import Budget, Usage, prompt_sizes, total_usage
from cradle_lib.detection.runs.journal import read_answers
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError

from . import services
from .fault_server import FaultServer, as_json, chat, error
from .services import TEMPLATE, long_corpus

pytestmark = pytest.mark.usefixtures("api")
PRICES = {"input": 3.0, "cached": 0.3, "written": 3.75, "output": 15.0}
PRICES |= {"date": "2026-01-01", "source": "https://prices.example"}


def make_model(url: str = "http://127.0.0.1:1", **fields: Any) -> Model:
    priced = {"id": "priced", "key": None, "prices": PRICES} | fields
    served = services.make_model("openai", url, max_new_tokens=10)
    return Model.model_validate(served.model_dump() | priced)


def highest_call_cost(model: Model, corpus: Corpus) -> float:
    """Returns the upper bound of the cost of one call."""
    return Budget(model, 1.0, prompt_sizes(corpus, TEMPLATE, "self")).highest


def answered(**tokens: Any) -> Prediction:
    return Prediction("d0000", 0, "k", "none", 0, Outcome.OK, **tokens)


def test_each_kind_of_token_has_its_own_price_or_that_of_input() -> None:
    # 1000 x 3 + 8000 x 0.3 + 2000 x 3.75 + 100 x 15 = 3000 + 2400 + 7500 + 1500 = 14400,
    # all per million.
    usage = Usage(fresh=1000, cached=8000, written=2000, output=100)
    assert usage.cost(Prices.model_validate(PRICES)) == pytest.approx(0.0144)
    prices = Prices.model_validate(PRICES | {"cached": None, "written": None})
    assert usage.cost(prices) == pytest.approx((11_000 * 3 + 1500) / 1e6)


def test_a_budget_reserves_the_cost_of_calls_in_flight() -> None:
    # 744 bytes and an overhead of 256 are at most 1000 tokens; cache writes have the highest price:
    # 1000 x 3.75 + 10 x 15 = 3900 per million, so at most $0.0039 per call.
    budget = Budget(make_model(), 0.02, {("d0000", 0): 744, ("d0000", 1): 44})
    assert budget.highest == pytest.approx(0.0039)
    # $0.02 allows 5 concurrent calls.
    assert (budget.parallel(8), budget.parallel(2)) == (5, 2)
    assert (budget.allows(5), budget.allows(6)) == (True, False)
    budget.check()
    for _ in range(3):
        budget.add(answered(tokens_in=1000, tokens_out=0))
    # $0.009 spent, $0.011 left: two calls fit, three do not.
    assert budget.parallel(8) == 2
    assert (budget.allows(2), budget.allows(3)) == (True, False)
    budget.add(answered(tokens_in=1100, tokens_out=0))
    assert budget.spent == pytest.approx(0.0123)
    # $0.0077 are left, and two calls may cost $0.0078.
    assert not budget.allows(2)
    budget.add(answered(tokens_in=1300, tokens_out=0))
    with pytest.raises(EngineError, match=r"\$0\.016 of --max-cost \$0\.02 are spent.*\$0\.0039"):
        budget.check()


def test_unreported_usage_is_charged_with_an_upper_bound() -> None:
    prompts = {("d0000", 0): 744, ("d0000", 1): 44}

    def spent(prediction: Prediction) -> float:
        budget = Budget(make_model(), 1.0, prompts)
        budget.add(prediction)
        return budget.spent

    assert spent(answered()) == pytest.approx(0.0039)
    # The other turn has at most 300 tokens: 300 x 3.75 + 10 x 15 = 1275.
    assert spent(replace(answered(), turn=1)) == pytest.approx(0.001275)
    # An unknown turn is charged like the longest one; incomplete usage like missing usage.
    assert spent(replace(answered(), dialogue="other")) == pytest.approx(0.0039)
    assert spent(answered(tokens_in=10)) == pytest.approx(0.0039)
    # The service ignored the token limit: 34 bytes are at most 34 tokens, 24 above the limit of 10.
    long = replace(answered(), answer="confirm_SI_active_ongoing; some \u00e9")
    assert spent(long) == pytest.approx(0.0039 + 24 * 15 / 1e6)
    budget = Budget(make_model(), 1.0, prompts, [answered(), answered(tokens_in=9, tokens_out=1)])
    assert budget.spent == pytest.approx(0.0039 + (9 * 3 + 15) / 1e6)
    # The service adds its own text to each prompt: the bound increases from then on.
    budget.add(answered(tokens_in=9000, tokens_out=1))
    assert budget.highest == pytest.approx((9000 * 3 + 15) / 1e6)
    with pytest.raises(EngineError, match="--max-cost needs prices, but the entry priced"):
        Budget(make_model(prices=None), 1.0, {})


def test_a_run_stops_before_its_limit_and_resumes(service: FaultServer, tmp_path: Path) -> None:
    corpus = long_corpus(6, 1)
    usage = {"prompt_tokens": 2000, "completion_tokens": 1, "total_tokens": 2001}
    name = service.add(lambda n: as_json(json.loads(chat()[2]) | {"usage": usage}))
    model, options = make_model(f"{service.url}/{name}"), Options(concurrency=8)
    # An answer costs (2000 x 3 + 15) / 1e6 = $0.006015, less than the bound.
    limit = 3.5 * 0.006015 + highest_call_cost(model, corpus)
    with pytest.raises(EngineError, match=r"--max-cost.*answers so far are kept") as stopped:
        run(model, corpus, out=tmp_path, options=replace(options, max_cost=limit))
    assert "\n" not in str(stopped.value)
    path = tmp_path / "tiny" / "priced.jsonl"
    assert 1 <= len(read_journal(path)[1]) == service.calls[name] < 6
    spent, _ = total_usage(read_answers(path)[1])
    assert spent.cost(Prices.model_validate(PRICES)) <= limit
    run(model, corpus, out=tmp_path, options=replace(options, max_cost=1.0))
    assert len(read_journal(path)[1]) == service.calls[name] == 6
    # A finished run needs no calls and accepts any limit.
    run(model, corpus, out=tmp_path, options=replace(options, max_cost=0.0))
    assert service.calls[name] == 6


# ---- Missing or invalid usage --------------------------------------------------------

USAGES: list[Any] = [
    None,
    {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    {"prompt_tokens": 4000, "completion_tokens": -50, "total_tokens": 3950},
    {"prompt_tokens": 10**15, "completion_tokens": 1, "total_tokens": 10**15 + 1},
    {"prompt_tokens": "9", "completion_tokens": "1"},
]


@pytest.mark.parametrize("usage", USAGES)
def test_a_limit_holds_for_invalid_usage(usage: Any, service: FaultServer, tmp_path: Path) -> None:
    name = service.add(lambda n: as_json(json.loads(chat()[2]) | {"usage": usage}))
    model, corpus = make_model(f"{service.url}/{name}"), long_corpus(20, 3)
    limit = 20 * highest_call_cost(model, corpus)
    with pytest.raises(EngineError, match=r"as an upper bound.*are kept"):
        run(model, corpus, out=tmp_path, options=Options(concurrency=4, max_cost=limit))
    calls = service.calls[name]
    # No call costs more than the bound, and most cost less.
    assert 20 - 4 <= calls < 60
    answers = read_answers(tmp_path / "tiny" / "priced.jsonl")[1]
    assert len(answers) == calls
    assert {(a.tokens_in, a.tokens_cached, a.tokens_out) for a in answers} == {(None,) * 3}
    # A later start includes the costs of the first one.
    with pytest.raises(EngineError, match="Give a higher limit to go on"):
        run(model, corpus, out=tmp_path, options=Options(max_cost=limit * 0.7))
    assert service.calls[name] == calls


def test_failed_calls_that_may_be_charged_are_counted(
    service: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = RetryPolicy(attempts=6, deadline=20.0, base=0.0, failures=99)
    monkeypatch.setattr(RetryPolicy, "of", classmethod(lambda *_: policy))
    corpus, seen = long_corpus(10, 1), list[Progress]()
    options = Options(concurrency=1, progress=seen.append)
    down = service.add(lambda n: error(500))
    busy = service.add(lambda n: error(429) if n < 8 else chat())
    model = make_model(f"{service.url}/{down}")
    limit = 4.5 * highest_call_cost(model, corpus)
    for match in (r"--max-cost .* are spent \(.*upper bound", "Give a higher limit to go on"):
        with pytest.raises(EngineError, match=match):
            run(model, corpus, out=tmp_path, options=replace(options, max_cost=limit))
        assert service.calls[down] == 4
    path = tmp_path / "tiny" / "priced.jsonl"
    # Each call is recorded as a failure of the same question.
    assert [a.outcome for a in read_answers(path)[1]] == [Outcome.FAILED] * 4
    assert len({a.key for a in read_answers(path)[1]}) == len(read_journal(path)[1]) == 1
    # They do not count as progress.
    assert {p.done for p in seen} == {0}
    # Rate-limited calls cost nothing.
    model = make_model(f"{service.url}/{busy}", id="busy")
    path = run(
        model, corpus.subset([0], "one"), out=tmp_path, options=replace(options, max_cost=limit)
    )
    assert (service.calls[busy], len(read_answers(path)[1])) == (9, 1)
