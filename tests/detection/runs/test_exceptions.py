"""Exceptions of a model fail one question; three in a row end the run."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Answer, Model, Options, Outcome, Progress, Prompt, read_journal
from cradle_lib.detection.models.engine import Sequential
from cradle_lib.detection.runs import identity
from cradle_lib.detection.runs import run as run_module
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError

from ..dialogues import make_corpus

Reply = Callable[[Prompt], Answer]


class OneByOne(Sequential):
    """An engine whose replies come from a function."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    def reply(self, prompt: Prompt) -> Answer:
        return self._reply(prompt)


@pytest.fixture
def many() -> Corpus:
    return make_corpus([[("User", f"turn {i}.{j}", "none") for j in range(3)] for i in range(4)])


@pytest.fixture
def start(
    always_none: Model, many: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    monkeypatch.setattr(identity, "code_of", lambda _: None)

    def start(reply: Reply, **more: object) -> None:
        monkeypatch.setattr(run_module, "make_engine", lambda *_: OneByOne(reply))
        run(always_none, many, out=tmp_path / "run.jsonl", **more)  # type: ignore[arg-type]

    return start


def outcomes(tmp_path: Path) -> dict[str, tuple[Outcome, str | None]]:
    stored = read_journal(tmp_path / "run.jsonl")[1]
    return {f"{int(p.dialogue[1:])}.{p.turn}": (p.outcome, p.reason) for p in stored}


def failed(tmp_path: Path) -> dict[str, str | None]:
    answers = outcomes(tmp_path).items()
    return {place: reason for place, (outcome, reason) in answers if outcome is Outcome.FAILED}


def raise_on(error: BaseException | type[BaseException], *where: str) -> Reply:
    """Makes a reply that raises an exception on some turns, such as ``1.2``; by default on all."""

    def reply(prompt: Prompt) -> Answer:
        if not where or any(prompt.current == f"turn {place}" for place in where):
            raise error
        return Answer("none")

    return reply


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("odd\n  text"), "ValueError: odd text"),
        (StopIteration("end"), "StopIteration: end"),
        (RuntimeError("\x1b[31m" + "x" * 5000), f"RuntimeError: \\x1b[31m{'x' * 281}"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_exception_fails_only_its_question(
    start: Callable[..., None], tmp_path: Path, error: Exception, reason: str
) -> None:
    start(raise_on(error, "1.1", "3.0"))
    assert len(outcomes(tmp_path)) == 12
    assert failed(tmp_path) == {"1.1": reason, "3.0": reason}
    start(raise_on(error, "3.0"))
    assert failed(tmp_path) == {"3.0": reason}


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"choices": [{"none": math.nan}]}, "not JSON compliant"),
        ({"choices": [{"none": np.float32(-1)}]}, "float32 is not JSON serializable"),
        ({"outcome": "odd"}, "field `outcome`"),
        ({"reason": b"odd"}, "bytes is not JSON serializable"),
        ({"reason": 5}, "field `reason` must be text"),
        ({"served": ["x"]}, "field `served` must be text"),
        ({"ending": 3}, "field `ending` must be text"),
        ({"choices": {"a": 1}}, "field `choices` must be a list"),
        ({"choices": [{"a": "x"}]}, "choices"),
        ({"tokens_in": 1, "limited_by": 7}, "field `limited_by` must be text"),
    ],
)
def test_an_answer_that_a_journal_cannot_have_is_failed(
    start: Callable[..., None], tmp_path: Path, metadata: dict[str, Any], problem: str
) -> None:
    def reply(prompt: Prompt) -> Answer:
        return Answer("none", **(metadata if prompt.current == "turn 1.1" else {}))

    start(reply)
    [(place, reason)] = failed(tmp_path).items()
    assert place == "1.1"
    assert str(reason).startswith("what the engine says about its answer can't be stored: ")
    assert problem in str(reason)
    (tmp_path / "run.jsonl").unlink()
    with pytest.raises(EngineError, match=f"3 questions in a row .*{problem}"):
        start(lambda _: Answer("none", **metadata))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(None), (Outcome.UNPARSED, "the answer is NoneType, expected text")),  # type: ignore[arg-type]
        (Answer(["none"]), (Outcome.UNPARSED, "the answer is list, expected text")),  # type: ignore[arg-type]
        (Answer(None, Outcome.REFUSED, "filter"), (Outcome.REFUSED, "filter")),  # type: ignore[arg-type]
        (Answer("none", Outcome.OK), (Outcome.OK, None)),
        (Answer("maybe", Outcome.OK), (Outcome.UNPARSED, None)),
        (None, (Outcome.FAILED, "TypeError: reply gave NoneType, expected an Answer")),
    ],
)
def test_any_type_of_answer_is_recorded(
    start: Callable[..., None], tmp_path: Path, answer: Answer, expected: tuple[Outcome, str]
) -> None:
    start(lambda prompt: answer if prompt.current == "turn 1.1" else Answer("none"))
    found = outcomes(tmp_path)
    assert (found.pop("1.1"), set(found.values())) == (expected, {(Outcome.OK, None)})


@pytest.mark.parametrize("count", [-7, "7", 7.5, True, None])
def test_numbers_of_tokens_that_are_none_are_not_reported(
    start: Callable[..., None], tmp_path: Path, count: Any
) -> None:
    start(lambda _: Answer("none", tokens_in=count, tokens_out=3))
    stored = read_journal(tmp_path / "run.jsonl")[1]
    assert {(p.tokens_in, p.tokens_out) for p in stored} == {(None, 3)}


def test_three_exceptions_in_a_row_stop_the_run_and_the_next_start_resumes(
    start: Callable[..., None], tmp_path: Path
) -> None:
    bad = [f"{i}.{j}" for i in range(4) for j in range(3) if i + j]
    with pytest.raises(EngineError) as error:
        start(raise_on(AttributeError("no logits"), *bad))
    assert isinstance(error.value.__cause__, AttributeError)
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith(
        "Always none: 3 questions in a row raised an exception, the last one in"
    )
    assert str(tmp_path / "run.jsonl") in message
    before = outcomes(tmp_path)
    assert list(failed(tmp_path).values()) == ["AttributeError: no logits"] * 3
    assert len(before) < 12
    good = [place for place, (outcome, _) in before.items() if outcome is Outcome.OK]
    start(raise_on(RuntimeError("asked twice"), *good))
    assert failed(tmp_path) == {}
    assert len(outcomes(tmp_path)) == 12


def test_only_an_answer_resets_the_exceptions(start: Callable[..., None], tmp_path: Path) -> None:
    bad = ("0.0", "0.1", "1.0", "1.1", "2.1")
    start(raise_on(KeyError("k"), *bad))
    assert tuple(failed(tmp_path)) == bad
    (tmp_path / "run.jsonl").unlink()
    broken = raise_on(KeyError("k"), "0.0", "0.2", "1.0")

    def reply(prompt: Prompt) -> Answer:
        return broken(prompt) if prompt.turn != 1 else Answer("", Outcome.FAILED, "too long")

    with pytest.raises(EngineError, match=r"dialogue d0001, turn 0: KeyError: 'k'"):
        start(reply)


def test_interrupts_and_other_errors_end_the_run(
    start: Callable[..., None], tmp_path: Path
) -> None:
    for error in (KeyboardInterrupt(), EngineError("no key")):
        with pytest.raises(type(error)):
            start(raise_on(error, "1.1"))

    def progress(now: Progress) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        start(lambda _: Answer("none"), options=Options(progress=progress))
    assert failed(tmp_path) == {}
