"""Journals become logs that ``inspect view`` opens, and logs become journals."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cradle_lib import paths
from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.detection.baselines.function import id_of
from cradle_lib.detection.journal import Journal, read_journal
from cradle_lib.detection.journal_lines import read_lines, to_bytes, to_line
from cradle_lib.detection.journal_paths import journal_files
from cradle_lib.detection.parsing import Outcome
from cradle_lib.detection.predictions import Predictions, load_predictions
from cradle_lib.detection.session import Prediction, Prompt, Session
from cradle_lib.errors import CradleError, JournalError
from cradle_lib.files import replacing
from cradle_lib.labels import format_mask, format_prediction
from cradle_lib.prompts import load_template
from cradle_lib.record import Record
from cradle_lib.scoring.conventions import LEVELS
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.scores import OVERALL

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

TASK: Final = "cradle_dialogue"
_RECORD: Final = "cradle_record"
#: Under this key the lines of a dialogue stand in a sample's store and in its score.
ANSWERS: Final = "cradle_answers"
_SETTINGS: Final = ("temperature", "top_p", "top_k", "seed", "max_tokens", "reasoning_effort")
# Providers of Inspect that compute on this machine.
_LOCAL: Final = frozenset({"mockllm", "hf", "vllm", "sglang", "ollama", "llama-cpp-python"})


def export_log(journal: Path, corpus: Corpus, path: Path) -> int:
    """Writes a run as a log of Inspect, ``.eval`` or ``.json``, with one sample for each dialogue.

    The log holds the text of the dialogues that are answered completely. If the journal does not
    exist, its name stands for its shards.

    Returns:
        How many dialogues are in it.

    Raises:
        CradleError: If the run does not fit the corpus, Inspect is missing, or the log can't be
            written.
    """
    _require_inspect()
    from inspect_ai import log as logs
    from inspect_ai.model import ModelUsage

    run = load_predictions(journal_files(journal), corpus, partial=True)
    record = run.record
    lines: dict[str, dict[int, Prediction]] = {}
    for file in journal_files(journal):
        for prediction in read_journal(file)[1]:
            lines.setdefault(prediction.dialogue, {})[prediction.turn] = prediction
    samples = [_sample(dialogue, lines[dialogue.id], record.model) for dialogue in run.corpus]
    metrics = {
        name: logs.EvalMetric(name=name, value=value) for name, value in overall_scores(run).items()
    }
    usage = [answer for each in lines.values() for answer in each.values()]
    content = logs.EvalLog(
        status="success",
        eval=logs.EvalSpec(
            created=record.started,
            task=TASK,
            task_registry_name=f"cradle_extras/{TASK}",
            dataset=logs.EvalDataset(
                name=corpus.name, samples=len(samples), sample_ids=[one.id for one in samples]
            ),
            model=f"{record.engine}/{record.model}",
            config=logs.EvalConfig(),
            packages=record.packages,
            metadata={_RECORD: record.model_dump()},
        ),
        results=logs.EvalResults(
            total_samples=len(samples),
            completed_samples=len(samples),
            scores=[logs.EvalScore(name="labels", scorer="labels", metrics=metrics)],
        ),
        stats=logs.EvalStats(
            model_usage={
                record.model: ModelUsage(
                    input_tokens=sum(answer.tokens_in or 0 for answer in usage),
                    output_tokens=sum(answer.tokens_out or 0 for answer in usage),
                )
            }
        ),
        samples=samples,
    )
    with replacing(path) as part:
        # Inspect chooses the format by the suffix.
        log = part.with_suffix(path.suffix)
        try:
            logs.write_eval_log(content, str(log))
            log.replace(part)
        finally:
            log.unlink(missing_ok=True)
    return len(samples)


def import_log(path: Path, corpus: Corpus, journal: Path | None = None) -> tuple[Path, int]:
    """Writes the answers of a log of the task :data:`TASK`, ``.eval`` or ``.json``, as a journal.

    Returns:
        The journal, by default where a run of that name would be, and how many answers are in it.

    Raises:
        JournalError: If it is no log, one of another task, or over another corpus.
        CradleError: If an answer was edited, or the journal belongs to another run.
    """
    log = _read(path)
    record = _record(log, corpus, path)
    if record.corpus_fingerprint != corpus.fingerprint:
        raise JournalError(
            f"{paths.shown(path)}: the evaluation was over {record.corpus} "
            f"({record.corpus_fingerprint}), this is {corpus.name} ({corpus.fingerprint}). "
            "Name its corpus with `--corpus`."
        )
    template = load_template(record.prompt)
    if template.hash != record.prompt_hash:
        raise JournalError(
            f"{paths.shown(path)}: asked with another prompt template {record.prompt!r} "
            f"({record.prompt_hash}, here {template.hash}). Import it where that template is."
        )
    taken: list[Prediction] = []
    for sample in log.samples or ():
        lines, place = sample.store.get(ANSWERS, []), f"{paths.shown(path)}, sample {sample.id}"
        if not isinstance(lines, list):
            raise JournalError(
                f"{place}: its {ANSWERS} are {lines!r:.40}, expected a list. "
                "A log is imported as it was written."
            )
        answers = read_answers(lines, record, place)
        found = corpus.by_id.get(str(sample.id))
        fitting = Session(found, template, record.history, answers).taken if found else []
        if len(fitting) < len(answers) or sample.epoch != 1:
            raise JournalError(
                f"{paths.shown(path)}: sample {sample.id}, epoch {sample.epoch}: "
                f"{len(fitting)} of its {len(answers)} answers are to a question of "
                f"{corpus.name}. A log is imported as it was written, with one epoch."
            )
        checked = _without_unfinished(sample, fitting)
        # What was asked after an answer that does not count had its labels in the history.
        taken += Session(found, template, record.history, checked).taken if found else []
    if not taken:
        raise JournalError(f"{paths.shown(path)}: there is no answer in this log.")
    target = journal or paths.RUNS / corpus.name / f"{record.model}.jsonl"
    with Journal.open(target, record) as opened:
        for prediction in taken:
            if prediction not in opened.stored(prediction.dialogue):
                opened.append(prediction)
    return target, len(taken)


def overall_scores(run: Predictions) -> dict[str, float]:
    """Gives each overall score at each level, by ``LEVEL_SCORE``; NaN for what is undefined."""
    results = {level: evaluate(run, level=level, draws=0) for level in LEVELS}
    return {
        f"{level}_{name}": float(result.estimate(name).value)
        for level, result in results.items()
        for name in OVERALL
    }


def read_answers(lines: Iterable[Any], record: Record, place: str) -> list[Prediction]:
    """Reads lines that a log carries as strictly as those of a journal.

    Raises:
        JournalError: If a line is damaged or was edited; the place is for its message.
    """
    written = [to_bytes(record), *(json.dumps(line).encode() for line in lines)]
    found = [line for line, _ in read_lines(written, Path(place))]
    return [line for line in found if isinstance(line, Prediction)]


def shown(turns: Iterable[Turn]) -> str:
    """Gives turns as a page of Inspect shows them, one a line."""
    return "\n".join(f"{turn.speaker}: {turn.text}" for turn in turns)


def _sample(dialogue: Dialogue, answers: Mapping[int, Prediction], model: str) -> EvalSample:
    from inspect_ai import log as logs
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput
    from inspect_ai.scorer import Score

    messages: list[Any] = []
    start = 0
    for turn in dialogue.user_turns:
        said = shown(dialogue.turns[start : turn.turn_id + 1])
        answer = answers[turn.turn_id].answer
        messages += [ChatMessageUser(content=said), ChatMessageAssistant(content=answer)]
        start = turn.turn_id + 1
    gold = [format_mask(turn.mask) for turn in dialogue.user_turns]
    # An unusable answer is never right, also where nothing is gold.
    given = [answers[turn.turn_id] for turn in dialogue.user_turns]
    tagged = [format_prediction(a.mask, usable=a.outcome is Outcome.OK) for a in given]
    right = sum(a == b for a, b in zip(gold, tagged, strict=True))
    return logs.EvalSample(
        id=dialogue.id,
        epoch=1,
        input=shown(dialogue.turns),
        target=gold,
        messages=messages,
        output=ModelOutput.from_content(model, messages[-1].content),
        scores={"labels": Score(value=right / len(gold), answer=" | ".join(tagged))},
        store={ANSWERS: [to_line(answer) for answer in answers.values()]},
    )


def _without_unfinished(sample: EvalSample, answers: list[Prediction]) -> list[Prediction]:
    """Makes failures of the answers that are not complete by what the sample's calls say.

    Earlier versions of the task counted such answers.
    """
    from cradle_extras.inspect.task import answer_of

    reasons: dict[str, str | None] = {}
    for event in sample.events:
        if event.event != "model" or not event.input:
            continue
        answer = answer_of(event.output)
        # The last call that asks a question counts, as in the evaluation.
        key = Prompt("", 0, event.input[-1].text, 0, "", 0).key
        reasons[key] = answer.reason if answer.outcome is Outcome.FAILED else None
    return [
        one
        if reasons.get(one.key) is None
        else replace(one, answer="", mask=0, outcome=Outcome.FAILED, reason=reasons[one.key])
        for one in answers
    ]


def _read(path: Path) -> EvalLog:
    _require_inspect()
    from inspect_ai.log import read_eval_log

    if not path.is_file():
        raise JournalError(f"{paths.shown(path)}: no such file. Name a log, .eval or .json.")
    try:
        log = read_eval_log(str(path), resolve_attachments=True)
    except Exception as error:  # Whatever the reader of a damaged log raises.
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise JournalError(f"{paths.shown(path)}: is no log of Inspect ({reason}).") from None
    if log.eval.task.rpartition("/")[2] != TASK:
        raise JournalError(
            f"{paths.shown(path)}: is a log of the task {log.eval.task!r:.80}, expected {TASK!r}. "
            f"Make one with `inspect eval cradle_extras/{TASK}`."
        )
    return log


def _record(log: EvalLog, corpus: Corpus, path: Path) -> Record:
    """Takes the record that was exported, or makes one of an evaluation."""
    about = {**(log.eval.metadata or {}), **log.metadata}
    try:
        if _RECORD in about:
            return Record.model_validate(about[_RECORD])
        ids = sorted(str(sample.id) for sample in log.samples or ())
        settings = log.eval.model_generate_config.model_dump(exclude_none=True)
        return Record.create(
            model=id_of(log.eval.model),
            name=log.eval.model,
            group="inspect",
            engine="inspect",
            weights=log.eval.model,
            endpoint=log.eval.model_base_url,
            remote=log.eval.model.partition("/")[0] not in _LOCAL,
            prompt=about["prompt"],
            prompt_hash=about["prompt_hash"],
            decoding={name: settings[name] for name in _SETTINGS if name in settings},
            history=about["history"],
            corpus=corpus.name,
            corpus_fingerprint=about["corpus_fingerprint"],
            corpus_file=corpus.file_key,
            dialogues=None if len(ids) == len(corpus) else ids,
            started=log.eval.created,
        )
    except CradleError:
        raise
    except (KeyError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise JournalError(
            f"{paths.shown(path)}: does not say how it was asked ({reason}). "
            f"Import a log of cradle_extras/{TASK}, or one that `cradle export inspect` made."
        ) from None


def _require_inspect() -> None:
    try:
        import inspect_ai  # noqa: F401
    except ImportError:
        raise JournalError(
            "logs of Inspect need the package inspect-ai, which is not installed. Install it with "
            f"`{paths.install_command('inspect')}`."
        ) from None
