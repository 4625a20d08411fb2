"""What runs used, beside their estimates, against worked sums."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Answer, Journal, Session, estimate_costs, journal_path
from cradle_lib.detection.api.usage import run_usage
from cradle_lib.detection.registry import load_registry
from cradle_lib.prompts import load_template
from cradle_lib.record import Record


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(paths, "SHIPPED_RUNS", tmp_path / "shipped")
    return tmp_path


def write(model: str, corpus: Corpus, answers: list[Answer]) -> None:
    """Writes a journal over the first dialogues, with these answers and then ``none``."""
    entry = load_registry()[model]
    template = load_template(entry.prompt)
    record = Record.create(
        model=entry.id,
        name=entry.name,
        group=entry.group,
        engine=entry.engine,
        prompt=entry.prompt,
        prompt_hash=template.hash,
        decoding={},
        corpus=corpus.name,
        corpus_fingerprint=corpus.fingerprint,
    )
    with Journal.open(journal_path(entry, corpus, out=paths.RUNS), record) as journal:
        session = Session(corpus.dialogues[0], template)
        for answer in answers:
            journal.append(session.answer(answer))


def test_a_run_of_a_provider_is_beside_its_estimate(home: Path, corpus: Corpus) -> None:
    told = {"tokens_in": 1000, "tokens_cached": 600, "tokens_written": 300, "tokens_out": 10}
    times = (0.5, 1.5, 4)
    answers = [Answer("none", **told, seconds=seconds) for seconds in times[:2]]
    write("claude-4.5-sonnet", corpus, [*answers, Answer("", seconds=times[2])])
    used = run_usage(corpus, ["keyword", "claude-4.5-sonnet"])
    [run] = used.to_dict("records")
    assert (run["answers"], run["silent"]) == (3, 1)
    assert (run["prompt_tokens"], run["output_tokens"]) == (2000, 20)
    # 600, 300 and 100 of 1000.
    assert (run["cached"], run["written"]) == pytest.approx((0.6, 0.3))
    # 2 x (100 x 3 + 600 x 0.3 + 300 x 3.75 + 10 x 15) / 1e6 = 2 x 1755 / 1e6.
    assert run["cost"] == pytest.approx(0.00351)
    assert run["seconds"] == 2
    [whole] = estimate_costs(corpus, ["claude-4.5-sonnet"]).to_dict("records")
    assert 0 < run["estimate"] < whole["cost"]
    assert any("gold labels" in note for note in used.attrs["notes"])


def test_a_run_that_counts_no_tokens_has_only_its_time(home: Path, corpus: Corpus) -> None:
    assert run_usage(corpus, ["keyword"]).empty
    write("keyword", corpus, [Answer("none", seconds=0.25)])
    [run] = run_usage(corpus, ["keyword"]).to_dict("records")
    assert (run["system"], run["answers"], run["seconds"]) == ("Keyword lexicon", 1, 0.25)
    assert all(math.isnan(run[name]) for name in ("prompt_tokens", "cached", "cost", "estimate"))


def test_a_run_without_prices_has_no_cost(home: Path, corpus: Corpus) -> None:
    write("smollm2-135m", corpus, [Answer("none", tokens_in=50, tokens_out=2)])
    [run] = run_usage(corpus, ["smollm2-135m"]).to_dict("records")
    assert (run["answers"], run["prompt_tokens"], run["cached"]) == (1, 50, 0)
    assert math.isnan(run["cost"])
