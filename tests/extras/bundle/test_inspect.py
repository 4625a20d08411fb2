"""Inspect asks as this project asks, and scores as it scores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cradle_extras.inspect.log import export_log, import_log
from cradle_lib.cli.main import app
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import Answer, Session, load_predictions, read_journal
from cradle_lib.errors import JournalError
from cradle_lib.prompts import load_template
from cradle_lib.scoring.conventions import LEVELS
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.scores import OVERALL

pytest.importorskip("inspect_ai")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("INSPECT_DISPLAY", "none")
    monkeypatch.setenv("INSPECT_LOG_DIR", str(tmp_path / "logs"))


def prompts_of(journal: Path, corpus: Corpus) -> dict[str, str]:
    """The answers of a run by the text of their questions."""
    record, lines = read_journal(journal)
    found: dict[str, str] = {}
    for dialogue in corpus:
        session = Session(dialogue, load_template(record.prompt), record.history)
        answers = {line.turn: line for line in lines if line.dialogue == dialogue.id}
        while (prompt := session.prompt) is not None:
            found[prompt.text] = answers[prompt.turn].answer
            session.answer(Answer(answers[prompt.turn].answer))
    return found


@pytest.fixture
def evaluated(journal: Path, corpus: Corpus, tmp_path: Path) -> Iterator[Any]:
    from inspect_ai import eval as evaluate_task
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from cradle_extras.inspect.task import cradle_dialogue

    known = prompts_of(journal, corpus)

    def answer(messages: list[Any], *_: object) -> ModelOutput:
        # A question with other words than those of `cradle infer` has no answer here.
        (message,) = messages
        output = ModelOutput.from_content("mock", known[message.text])
        output.usage = ModelUsage(input_tokens=9, output_tokens=1, total_tokens=10)
        return output

    (log,) = evaluate_task(
        cradle_dialogue(corpus=str(corpus.path)),
        model=get_model("mockllm/model", custom_outputs=answer),
        log_dir=str(tmp_path / "logs"),
    )
    assert log.status == "success", log.error
    return log


def expected(journal: Path, corpus: Corpus) -> dict[str, float]:
    run = load_predictions(journal, corpus)
    results = {level: evaluate(run, level=level, draws=0) for level in LEVELS}
    return {
        f"{level}_{name}": float(results[level].estimate(name).value)
        for level in LEVELS
        for name in OVERALL
    }


def test_the_scores_are_those_of_the_same_answers(
    evaluated: Any, journal: Path, corpus: Corpus
) -> None:
    (score,) = evaluated.results.scores
    found = {name: metric.value for name, metric in score.metrics.items()}
    assert found == pytest.approx(expected(journal, corpus), nan_ok=True)
    assert 0 < found["turn_micro_f1"] <= 1


def test_a_log_becomes_a_journal_with_the_same_answers(
    evaluated: Any, journal: Path, corpus: Corpus, tmp_path: Path
) -> None:
    made, number = import_log(Path(evaluated.location), corpus, tmp_path / "imported.jsonl")
    record, lines = read_journal(made)
    original = read_journal(journal)[1]
    assert number == len(lines) == len(original)
    assert [(a.key, a.answer, a.outcome) for a in lines] == [
        (a.key, a.answer, a.outcome) for a in original
    ]
    assert (record.name, record.engine, record.remote) == ("mockllm/model", "inspect", False)
    assert expected(made, corpus) == pytest.approx(expected(journal, corpus), nan_ok=True)


@pytest.mark.parametrize("ending", ["eval", "json"])
def test_a_run_goes_out_and_comes_back_as_it_was(
    ending: str, journal: Path, corpus: Corpus, tmp_path: Path
) -> None:
    from inspect_ai.log import read_eval_log

    log = tmp_path / f"run.{ending}"
    assert export_log(journal, corpus, log) == len(corpus)
    read = read_eval_log(str(log))
    assert [sample.id for sample in read.samples or ()] == [dialogue.id for dialogue in corpus]
    found = {name: metric.value for name, metric in read.results.scores[0].metrics.items()}
    assert found == pytest.approx(expected(journal, corpus), nan_ok=True)
    made, _ = import_log(log, corpus, tmp_path / "back.jsonl")
    assert read_journal(made) == read_journal(journal)
    # Once more changes nothing.
    content = made.read_bytes()
    import_log(log, corpus, made)
    assert made.read_bytes() == content


def test_what_is_no_log_of_this_task_is_refused_in_one_line(
    journal: Path, corpus: Corpus, tmp_path: Path
) -> None:
    log = tmp_path / "run.json"
    export_log(journal, corpus, log)
    content = json.loads(log.read_text())
    other = tmp_path / "other.csv"
    other.write_text(Path(str(corpus.path)).read_text().replace("exam", "test"))
    with pytest.raises(JournalError, match=r"Name its corpus with `--corpus`"):
        import_log(log, load_corpus(other))
    for change, told in (
        ({"task": "arc"}, "a log of the task 'arc'"),
        ({"metadata": {}}, "does not say how it was asked"),
    ):
        log.write_text(json.dumps({**content, "eval": {**content["eval"], **change}}))
        with pytest.raises(JournalError, match=told) as refused:
            import_log(log, corpus)
        assert "\n" not in str(refused.value)
    line = content["samples"][0]["store"]["cradle_answers"][0]
    line["answer"] = line["labels"] = "alert_ongoing"
    log.write_text(json.dumps(content))
    with pytest.raises(JournalError, match=r"1 of its 3 answers"):
        import_log(log, corpus, tmp_path / "edited.jsonl")
    for answers in (5, None, "x", {"a": 1}):
        content["samples"][0]["store"]["cradle_answers"] = answers
        log.write_text(json.dumps(content))
        with pytest.raises(JournalError, match=r"sample \S+: its cradle_answers are .* a list"):
            import_log(log, corpus, tmp_path / "edited.jsonl")
    log.write_text("{}")
    with pytest.raises(JournalError, match="is no log of Inspect"):
        import_log(log, corpus)
    with pytest.raises(JournalError, match="no such file"):
        import_log(tmp_path / "missing.eval", corpus)


def test_the_commands_say_what_comes_next(journal: Path, corpus: Corpus, tmp_path: Path) -> None:
    log, made = tmp_path / "run.eval", tmp_path / "back.jsonl"
    words = ["--corpus", str(corpus.path), "--out"]
    out = CliRunner().invoke(app, ["export", "inspect", str(journal), *words, str(log)])
    assert "inspect view --log-dir" in out.stdout
    back = CliRunner().invoke(app, ["import", "inspect", str(log), *words, str(made)])
    assert f"Next: cradle score {made}" in back.stdout


def test_a_refusal_and_a_cut_answer_are_told_apart() -> None:
    from inspect_ai.model import ModelOutput

    from cradle_extras.inspect.task import answer_of

    texts = {"stop": "none", "max_tokens": "alert_ong", "content_filter": "I can't."}
    told = {
        reason: answer_of(ModelOutput.from_content("m", text, stop_reason=reason)).outcome
        for reason, text in texts.items()
    }
    assert told == {"stop": None, "max_tokens": "unparsed", "content_filter": "refused"}


def test_only_an_answer_that_is_known_to_be_complete_counts() -> None:
    from inspect_ai.model import ModelOutput

    from cradle_extras.inspect.task import answer_of

    for reason in ("unknown", "tool_calls"):
        answer = answer_of(ModelOutput.from_content("m", "none", stop_reason=reason))
        told = f"the answer ended with stop_reason {reason!r}"
        assert (answer.text, answer.outcome, answer.reason) == ("", "failed", told)
    broken = answer_of(ModelOutput.from_content("m", "none", error="over\nloaded"))
    assert (broken.outcome, broken.reason) == (
        "failed",
        "the model's provider reports an error: over loaded",
    )
    assert answer_of(ModelOutput(model="m")).outcome == "failed"


@pytest.mark.parametrize("older", [False, True])
def test_an_imported_answer_that_is_not_complete_has_failed(
    older: bool, journal: Path, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inspect_ai import eval as evaluate_task
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from cradle_extras.inspect import task as inspect_task

    calls: list[str] = []

    def answer(messages: list[Any], *_: object) -> ModelOutput:
        calls.append(messages[0].text)
        reason = "unknown" if len(calls) == 1 else "stop"
        output = ModelOutput.from_content("mock", "alert_ongoing", stop_reason=reason)
        output.usage = ModelUsage(input_tokens=9, output_tokens=1, total_tokens=10)
        return output

    if older:
        # Earlier versions of the task read the text alone.
        monkeypatch.setattr(inspect_task, "answer_of", lambda output: Answer(output.completion))
    (log,) = evaluate_task(
        inspect_task.cradle_dialogue(corpus=str(corpus.path)),
        model=get_model("mockllm/model", custom_outputs=answer),
        log_dir=str(tmp_path / "logs"),
        max_connections=1,
    )
    assert log.status == "success", log.error
    monkeypatch.undo()
    made, _ = import_log(Path(log.location), corpus, tmp_path / "imported.jsonl")
    lines = {line.key: line for line in read_journal(made)[1]}
    first = lines[hashlib.sha256(calls[0].encode()).hexdigest()[:16]]
    assert (first.outcome, first.mask) == ("failed", 0)
    assert first.reason == "the answer ended with stop_reason 'unknown'"
    assert {line.outcome for line in lines.values()} == {"ok", "failed"}
    assert sum(line.outcome == "failed" for line in lines.values()) == 1


def test_where_no_dialogue_is_answered_completely_there_is_no_score(corpus: Corpus) -> None:
    from inspect_ai.scorer import SampleScore, Score

    from cradle_extras.inspect.task import benchmark_scores

    protocol = {"corpus": str(corpus.path), "split": "test", "history": "self", "prompt": "turn"}
    score = Score(value=0.0, metadata={"cradle_answers": [], **protocol})
    assert benchmark_scores([SampleScore(score=score)]) == {}


def test_an_unusable_answer_is_never_right(corpus: Corpus, tmp_path: Path) -> None:
    from inspect_ai import eval as evaluate_task
    from inspect_ai.log import read_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from cradle_extras.inspect.task import cradle_dialogue

    def answer(*_: object) -> ModelOutput:
        output = ModelOutput.from_content("mock", "This person is well.")
        output.usage = ModelUsage(input_tokens=9, output_tokens=1, total_tokens=10)
        return output

    (log,) = evaluate_task(
        cradle_dialogue(corpus=str(corpus.path)),
        model=get_model("mockllm/model", custom_outputs=answer),
        log_dir=str(tmp_path / "logs"),
    )
    made, _ = import_log(Path(log.location), corpus, tmp_path / "unusable.jsonl")
    export_log(made, corpus, tmp_path / "exported.json")
    for found in (log, read_eval_log(str(tmp_path / "exported.json"))):
        scores = [sample.scores["labels"] for sample in found.samples or ()]
        assert {score.value for score in scores} == {0.0}
        assert {part for s in scores for part in s.answer.split(" | ")} == {"unusable answer"}
