"""Upper bounds and actual costs of runs, compared with worked sums."""

from __future__ import annotations

import math

import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import (
    Answer,
    Journal,
    Session,
    estimate_costs,
    journal_path,
    run_model,
)
from cradle_lib.detection.models.registry import load_registry
from cradle_lib.detection.runs.costs import prompt_sizes, run_usage
from cradle_lib.detection.runs.journal import lock_journal
from cradle_lib.errors import RegistryError
from cradle_lib.labels import LABELS
from cradle_lib.prompts import load_template
from cradle_lib.record import Record


def write(model: str, corpus: Corpus, answers: list[Answer]) -> None:
    """Writes a journal with these answers to the first dialogue."""
    entry = load_registry()[model]
    template = load_template(entry.prompt)
    about = {name: getattr(entry, name) for name in ("name", "group", "engine", "prompt")}
    record = Record.create(
        **about,
        model=entry.id,
        prompt_hash=template.hash,
        decoding={},
        corpus=corpus.name,
        corpus_fingerprint=corpus.fingerprint,
    )
    path = journal_path(entry.id, corpus, out=paths.RUNS)
    with lock_journal(path), Journal.open(path, record) as journal:
        session = Session(corpus.dialogues[0], template)
        for answer in answers:
            journal.append(session.answer(answer))


def test_no_prompt_is_longer_than_the_computed_bound(corpus: Corpus) -> None:
    template = load_template("turn")
    found = prompt_sizes(corpus.dialogues, template, "self")
    assert found.keys() == {(d.id, t.turn_id) for d in corpus.dialogues for t in d.user_turns}
    for answer in ("none", "; ".join(LABELS), "what?"):
        for dialogue in corpus.dialogues:
            session = Session(dialogue, template)
            while (prompt := session.prompt) is not None:
                assert len(prompt.text.encode()) <= found[prompt.dialogue, prompt.turn]
                session.answer(Answer(answer))
    # The first prompt has no tags, so that its bound is exact.
    first = Session(corpus.dialogues[0], template).prompt
    assert first
    assert found[first.dialogue, first.turn] == len(first.text.encode())


def test_the_upper_bound_of_the_cost_follows_from_the_bytes_of_prompts(corpus: Corpus) -> None:
    frame = estimate_costs(corpus).set_index("system")
    names = ["GPT-5.1", "Claude-4.5-Sonnet", "Claude-5.5-Sonnet", "Gemini-3-Flash"]
    assert frame.index.tolist() == names
    sizes = prompt_sizes(corpus, load_template("turn"), "self")
    assert (frame["calls"] == 6).all()
    assert (frame["prompt_bytes"] == sum(sizes.values())).all()
    assert (frame["answer_tokens"] == 6 * 256).all()
    # 256 tokens overhead per prompt; for Claude, the highest price is that of cache writes.
    tokens = sum(sizes.values()) + 6 * 256
    prices = {"GPT-5.1": (1.25, 10), "Claude-4.5-Sonnet": (3.75, 15), "Gemini-3-Flash": (0.5, 3)}
    for system, (prompt, answer) in prices.items():
        expected = (tokens * prompt + 6 * 256 * answer) / 1e6
        assert frame.loc[system, "highest_cost"] == pytest.approx(expected)
    # Four bytes per token, ten tokens per answer, and "none" as every earlier answer.
    sessions = [Session(dialogue, load_template("turn")) for dialogue in corpus]
    total = 0
    for session in sessions:
        while (prompt := session.prompt) is not None:
            total += len(prompt.text.encode()) // 4
            session.answer(Answer("none"))
    expected = (total * 1.25 + 60 * 10) / 1e6
    assert frame.loc["GPT-5.1", "usual_cost"] == pytest.approx(expected)
    assert frame["source"].str.startswith("https://").all()
    [bare] = estimate_costs(corpus, ["keyword"]).to_dict("records")
    assert (bare["calls"], math.isnan(bare["highest_cost"])) == (6, True)


@pytest.mark.usefixtures("home")
def test_the_cost_of_a_run_follows_from_its_tokens(corpus: Corpus) -> None:
    tokens = {"tokens_in": 1000, "tokens_cached": 600, "tokens_written": 300, "tokens_out": 10}
    answers = [Answer("none", **tokens, seconds=seconds) for seconds in (0.5, 1.5)]
    write("claude-4.5-sonnet", corpus, [*answers, Answer("", seconds=4)])
    [run] = run_usage(corpus, ["keyword", "claude-4.5-sonnet"]).to_dict("records")
    assert (run["answers"], run["silent"], run["seconds"]) == (3, 1, 1.5)
    assert (run["prompt_tokens"], run["output_tokens"]) == (2000, 20)
    # Of 1000 tokens, 600 are cached, 300 written and 100 fresh.
    assert (run["cached"], run["written"]) == pytest.approx((0.6, 0.3))
    # 2 x (100 x 3 + 600 x 0.3 + 300 x 3.75 + 10 x 15) / 1e6 = 2 x 1755 / 1e6.
    assert run["cost"] == pytest.approx(0.00351)


@pytest.mark.usefixtures("home")
def test_a_run_without_counts_or_prices_has_no_cost(corpus: Corpus) -> None:
    assert run_usage(corpus, ["keyword"]).empty
    write("keyword", corpus, [Answer("none", seconds=0.25)])
    write("smollm2-135m", corpus, [Answer("none", tokens_in=50, tokens_out=2)])
    # A function that has the name of a service does not get its prices.
    run_model(lambda _: "none", corpus, name="Claude-4.5-Sonnet")
    used = run_usage(corpus, ["keyword", "smollm2-135m", "own-claude-4.5-sonnet"])
    assert used["seconds"].iloc[0] == 0.25
    assert used["prompt_tokens"].fillna(-1).tolist() == [-1, 50, -1]
    assert used["cost"].isna().all()
    with pytest.raises(RegistryError, match="no model 'absent'"):
        run_usage(corpus, ["absent"])
