"""The Inspect task has the prompts and scores of this project."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import (
    Answer,
    Session,
    find_model,
    load_predictions,
    load_registry,
    read_journal,
)
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import CradleError, JournalError
from cradle_lib.prompts import load_template
from cradle_lib.scoring.conventions import LEVELS
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.scores import OVERALL

from ...cli.in_process import invoke

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _inspect_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # Imported here and not at collection, because it takes seconds in each worker.
    pytest.importorskip("inspect_ai")
    monkeypatch.setenv("INSPECT_DISPLAY", "none")
    monkeypatch.setenv("INSPECT_LOG_DIR", str(tmp_path / "logs"))


def prompts_of(journal: Path, corpus: Corpus) -> dict[str, str]:
    """Returns the answers of a run by the text of their prompts."""
    record, lines = read_journal(journal)
    found: dict[str, str] = {}
    for dialogue in corpus:
        session = Session(dialogue, load_template(record.prompt), record.history)
        answers = {line.turn: line for line in lines if line.dialogue == dialogue.id}
        while (prompt := session.prompt) is not None:
            found[prompt.text] = answers[prompt.turn].answer
            session.answer(Answer(answers[prompt.turn].answer))
    return found


def evaluate_with(reply: Callable[[str], Any], corpus: Corpus, folder: Path) -> Any:
    """Runs the task with a model that is a function of the prompt."""
    from inspect_ai import eval as evaluate_task
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from cradle_extras.inspect.task import cradle_dialogue

    def answer(messages: list[Any], *_: object) -> ModelOutput:
        (message,) = messages
        output = ModelOutput.from_content("mock", reply(message.text))
        output.usage = ModelUsage(input_tokens=9, output_tokens=1, total_tokens=10)
        return output

    (log,) = evaluate_task(
        cradle_dialogue(corpus=str(corpus.path)),
        model=get_model("mockllm/model", custom_outputs=answer),
        log_dir=str(folder / "logs"),
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


def test_scores_equal_those_of_the_run(journal: Path, corpus: Corpus, tmp_path: Path) -> None:
    # A prompt that differs from that of `cradle infer` raises KeyError.
    answers = prompts_of(journal, corpus)
    log = evaluate_with(answers.__getitem__, corpus, tmp_path)
    (score,) = log.results.scores
    found = {name: metric.value for name, metric in score.metrics.items()}
    assert found == pytest.approx(expected(journal, corpus), nan_ok=True)
    assert 0 < found["turn_micro_f1"] <= 1


@pytest.mark.parametrize("ending", ["eval", "json"])
def test_a_run_becomes_a_log(ending: str, journal: Path, corpus: Corpus, tmp_path: Path) -> None:
    from inspect_ai.log import read_eval_log

    log = tmp_path / f"run.{ending}"
    done = invoke("export", "inspect", journal, "--corpus", corpus.path or "", "--out", log)
    assert "inspect view --log-dir" in done.stdout
    read = read_eval_log(str(log))
    assert [sample.id for sample in read.samples or ()] == [dialogue.id for dialogue in corpus]
    found = {name: metric.value for name, metric in read.results.scores[0].metrics.items()}
    assert found == pytest.approx(expected(journal, corpus), nan_ok=True)
    texts = [str(message.content) for sample in read.samples for message in sample.messages]
    assert sum("hurting myself again" in text for text in texts) == 2


def test_a_log_is_not_replaced(
    journal: Path, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("export", "inspect", journal, "--corpus", corpus.path or "")
    assert invoke(*words).exit_code == 0
    log = tmp_path / "logs" / "keyword.tiny.eval"
    content = log.read_bytes()
    refused = invoke(*words)
    assert isinstance(refused.exception, CradleError)
    assert "logs/keyword.tiny.eval: already exists. Move it away" in str(refused.exception)
    assert log.read_bytes() == content


def test_an_unfinished_run_is_not_exported(journal: Path, corpus: Corpus, tmp_path: Path) -> None:
    from cradle_extras.inspect.log import export_log

    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(JournalError, match="not finished: 1 of its dialogues are complete"):
        export_log(journal, corpus, tmp_path / "run.json")


def test_dialogues_without_user_turns_are_not_in_the_log(tmp_path: Path) -> None:
    from inspect_ai.log import read_eval_log

    from cradle_extras.inspect.log import export_log

    path = tmp_path / "own.csv"
    path.write_text("turn_id,text,labels\n0,Listener: Hi.,none\n0,User: Hello.,none\n")
    corpus = load_corpus(path)
    journal = run(find_model("keyword", load_registry()), corpus, out=tmp_path)
    assert export_log(journal, corpus, tmp_path / "run.json") == 1
    [sample] = read_eval_log(str(tmp_path / "run.json")).samples or ()
    assert (sample.id, sample.input) == ("d0001", "User: Hello.")


def test_only_answers_with_a_known_ending_count() -> None:
    from inspect_ai.model import ModelOutput

    from cradle_extras.inspect.task import answer_of

    for reason, outcome in (
        ("stop", None),
        ("max_tokens", "unparsed"),
        ("content_filter", "refused"),
        ("unknown", "failed"),
        ("tool_calls", "failed"),
    ):
        answer = answer_of(ModelOutput.from_content("m", "none", stop_reason=reason))  # type: ignore[arg-type]
        assert answer.outcome == outcome
        if outcome == "failed":
            message = f"the answer ended with stop_reason {reason!r}"
            assert (answer.text, answer.reason) == ("", message)
    broken = answer_of(ModelOutput.from_content("m", "none", error="over\nloaded"))
    message = "the model's provider reports an error: over loaded"
    assert (broken.outcome, broken.reason) == ("failed", message)
    assert answer_of(ModelOutput(model="m")).outcome == "failed"


def test_without_a_complete_dialogue_there_is_no_score(corpus: Corpus) -> None:
    from inspect_ai.scorer import SampleScore, Score

    from cradle_extras.inspect.task import benchmark_scores

    protocol = {"corpus": str(corpus.path), "split": "test", "history": "self", "prompt": "turn"}
    score = Score(value=0.0, metadata={"cradle_answers": [], **protocol})
    assert benchmark_scores([SampleScore(score=score)]) == {}


def test_unusable_answers_are_wrong_and_dialogues_without_gold_labels_have_no_score(
    tmp_path: Path,
) -> None:
    path = tmp_path / "half.csv"
    path.write_text("turn_id,text,labels\n0,User: Hello.,none\n0,User: Hi.,\n", encoding="utf-8")
    log = evaluate_with(lambda _: "This person is well.", load_corpus(path), tmp_path)
    first, second = (sample.scores["labels"] for sample in log.samples)
    # Even where no label is right.
    assert (first.value, first.answer) == (0, "unusable answer")
    assert math.isnan(second.value)
