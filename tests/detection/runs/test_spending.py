"""The cost limit of a run holds for engines of other packages, however they make their calls."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Self

import pytest

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Answer, Model, Options, Outcome, Prediction, Prompt, read_journal
from cradle_lib.detection.models.engine import Emit, Engine, Questions, Sequential
from cradle_lib.detection.runs.costs import highest_cost, prompt_sizes
from cradle_lib.detection.runs.journal import read_answers
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError
from cradle_lib.prompts import load_template

from ..dialogues import make_corpus
from ..installed_engines import install_engines

PRICES = {"input": 2.0, "output": 5.0, "date": "2026-01-01", "source": "https://prices.example"}


class Service(Engine):
    """A service that sends a bill for every call, answered or not."""

    kind = "service"
    bill: ClassVar[list[float]] = []
    _lock: ClassVar = Lock()

    @classmethod
    def create(cls, model: Model, corpus: Corpus, options: Options) -> Self:
        return cls()

    def call(self, prompt: Prompt) -> Answer:
        # A token of each prompt has two bytes.
        tokens = {"tokens_in": len(prompt.text.encode()) // 2, "tokens_out": 1}
        with self._lock:
            self.bill.append((2.0 * tokens["tokens_in"] + 5.0) / 1e6)
        return Answer("none", **tokens)


class OneByOne(Service, Sequential):
    """Asks one question after the other."""

    def reply(self, prompt: Prompt) -> Answer:
        return self.call(prompt)


class Losing(OneByOne):
    """Gets an answer only after three lost calls, and never for the second dialogue."""

    def reply(self, prompt: Prompt) -> Answer:
        lost = 0
        while prompt.dialogue == "d0001" or lost < 3:
            answer = self.call(prompt)
            failed = Answer("", Outcome.FAILED, "lost", tokens_in=answer.tokens_in, tokens_out=1)
            self.on_lost_call(Prediction.of(prompt, failed))
            lost += 1
        return self.call(prompt)


class Threads(Service):
    """Asks about all dialogues in parallel, and takes no notice of errors."""

    def answer_all(self, sessions: Iterable[Questions], emit: Emit) -> None:
        def work(session: Questions) -> None:
            while (prompt := session.prompt) is not None:
                with suppress(EngineError):
                    emit(session.answer(self.call(prompt)))

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(work, sessions))


class Batches(Service):
    """Asks the next question of each dialogue in one batch."""

    def answer_all(self, sessions: Iterable[Questions], emit: Emit) -> None:
        waiting = list(sessions)
        while asked := [(session, p) for session in waiting if (p := session.prompt) is not None]:
            answers = [self.call(prompt) for _, prompt in asked]
            for (session, _), answer in zip(asked, answers, strict=True):
                emit(session.answer(answer))


class AtTheEnd(Service):
    """Emits the answers about a dialogue only when it sees no further question."""

    def answer_all(self, sessions: Iterable[Questions], emit: Emit) -> None:
        for session in sessions:
            made = []
            while (prompt := session.prompt) is not None:
                made.append(session.answer(self.call(prompt)))
            for prediction in made:
                emit(prediction)


class Idle(Service):
    """Ends without an answer."""

    def answer_all(self, sessions: Iterable[Questions], emit: Emit) -> None:
        return


ENGINES = {kind.__name__.lower(): kind for kind in (OneByOne, Losing, Threads, Batches, AtTheEnd)}


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The engines of this module as those of an installed package."""
    kinds = (*ENGINES.values(), Idle)
    places = {kind.__name__.lower(): f"{__name__}:{kind.__name__}" for kind in kinds}
    install_engines(tmp_path_factory.mktemp("others"), monkeypatch, **places)
    monkeypatch.setattr(Service, "bill", [])


def priced(engine: str) -> Model:
    fields: dict[str, Any] = {"id": engine, "name": engine.title(), "group": "own"}
    fields |= {"engine": engine, "base_url": "http://127.0.0.1:1", "prices": PRICES}
    return Model.model_validate(fields)


def corpus_of(dialogues: int, turns: int) -> Corpus:
    return make_corpus(
        [[("User", f"{n}.{t} Hm.", "none") for t in range(turns)] for n in range(dialogues)]
    )


@pytest.fixture
def long() -> Corpus:
    return corpus_of(12, 3)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize(("dialogues", "turns"), [(12, 3), (2, 18)])
def test_no_engine_spends_more_than_the_limit(
    engine: str, concurrency: int, dialogues: int, turns: int, tmp_path: Path
) -> None:
    # The answers about a long dialogue alone cost more than the limit, if all are emitted late.
    long = corpus_of(dialogues, turns)
    with pytest.raises(EngineError, match="are spent"):
        run(priced(engine), long, out=tmp_path, options=Options(max_cost=0.0))
    assert Service.bill == []
    # Fifteen of at least 36 calls; a call may cost 0.02.
    limit = 0.12
    options = Options(max_cost=limit, concurrency=concurrency)
    with pytest.raises(EngineError, match=r"of --max-cost \$0\.12 are spent.*are kept"):
        run(priced(engine), long, out=tmp_path, options=options)
    assert len(Service.bill) >= 3
    assert sum(Service.bill) <= limit
    # Every call is in the journal, so that a later start counts it.
    path = tmp_path / "tiny" / f"{engine}.jsonl"
    assert len(read_answers(path)[1]) == len(Service.bill)
    # The limit is recorded, and holds for a start that names none.
    with pytest.raises(EngineError, match=r"of --max-cost \$0\.12 are spent"):
        run(priced(engine), long, out=tmp_path)
    assert sum(Service.bill) <= limit


@pytest.mark.parametrize("engine", sorted(ENGINES.keys() - {"losing"}))
def test_a_run_that_fits_is_not_stopped(engine: str, long: Corpus, tmp_path: Path) -> None:
    run(priced(engine), long, out=tmp_path / "first", options=Options(max_cost=9.0))
    cost, calls = sum(Service.bill), len(Service.bill)
    # Each question was answered; the last one may have cost as much as any.
    prompts = prompt_sizes(long, load_template("turn"), "self")
    limit = cost + highest_cost(priced(engine), max(prompts.values()))
    run(priced(engine), long, out=tmp_path / "second", options=Options(max_cost=limit))
    assert len(Service.bill) == 2 * calls


@pytest.mark.parametrize("engine", sorted(ENGINES.keys() - {"losing"}))
def test_with_a_sufficient_limit_every_question_is_asked_once(
    engine: str, long: Corpus, tmp_path: Path
) -> None:
    with pytest.raises(EngineError, match="are spent"):
        run(priced(engine), long, out=tmp_path, options=Options(max_cost=0.0))
    # A new limit replaces the recorded one.
    path = run(priced(engine), long, out=tmp_path, options=Options(max_cost=1.0, concurrency=2))
    record, answers = read_journal(path)
    assert record.max_cost == 1.0
    assert len(answers) == len(Service.bill) == 36
    assert {answer.outcome for answer in answers} == {Outcome.OK}


def test_an_engine_that_ends_early_is_an_error(long: Corpus, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="engine idle ended, but 36 questions are open"):
        run(priced("idle"), long, out=tmp_path)
