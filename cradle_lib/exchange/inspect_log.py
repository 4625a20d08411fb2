"""Journals become logs that ``inspect view`` opens, and logs become journals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.baselines.function import id_of
from cradle_lib.detection.journals.journal import Journal, read_journal
from cradle_lib.detection.journals.lines import to_line
from cradle_lib.detection.journals.places import journal_files
from cradle_lib.detection.journals.predictions import load_predictions
from cradle_lib.detection.session import Prediction, Session
from cradle_lib.errors import CradleError, ExchangeError
from cradle_lib.exchange.inspect_lines import ANSWERS, read_answers
from cradle_lib.files import replacing
from cradle_lib.labels import format_mask
from cradle_lib.prompts import load_template
from cradle_lib.record import Record
from cradle_lib.scoring.core.conventions import LEVELS
from cradle_lib.scoring.core.evaluate import evaluate
from cradle_lib.scoring.core.scores import OVERALL

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

TASK: Final = "cradle_dialogue"
_RECORD: Final = "cradle_record"
# Providers of Inspect that compute on this machine.
_LOCAL: Final = frozenset({"mockllm", "hf", "vllm", "sglang", "ollama", "llama-cpp-python"})


def export_log(journal: Path, corpus: Corpus, path: Path) -> int:
    """Writes a run as a log of Inspect, with one sample for each dialogue.

    Args:
        journal: The run's journal; if it does not exist, its name stands for its shards.
        corpus: The corpus that the run was over.
        path: The log to write, ``.eval`` or ``.json``. It holds the text of the dialogues.

    Returns:
        How many dialogues are in it: those that are answered completely.

    Raises:
        CradleError: If the run does not fit the corpus, Inspect is missing, or the log can't be
            written.
    """
    _require_inspect()
    from inspect_ai import log as logs
    from inspect_ai.model import ModelUsage

    run = load_predictions(journal_files(journal), corpus, partial=True)
    record = run.record
    lines: dict[str, list[Prediction]] = {}
    for file in journal_files(journal):
        for prediction in read_journal(file)[1]:
            lines.setdefault(prediction.dialogue, []).append(prediction)
    samples = [
        _sample(dialogue.id, run.corpus, place, lines, record, logs)
        for place, dialogue in enumerate(run.corpus)
    ]
    metrics = {
        f"{level}_{name}": logs.EvalMetric(
            name=f"{level}_{name}",
            value=float(evaluate(run, level=level, draws=0).estimate(name).value),
        )
        for level in LEVELS
        for name in OVERALL
    }
    usage = [answer for each in lines.values() for answer in each]
    content = logs.EvalLog(
        status="success",
        eval=logs.EvalSpec(
            created=record.started,
            task=TASK,
            task_registry_name=f"cradle_lib/{TASK}",
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
        # Inspect goes by the ending.
        whole = part.with_suffix(path.suffix)
        try:
            logs.write_eval_log(content, str(whole))
            whole.replace(part)
        finally:
            whole.unlink(missing_ok=True)
    return len(samples)


def import_log(path: Path, corpus: Corpus, journal: Path | None = None) -> tuple[Path, int]:
    """Writes the answers of a log as a journal.

    Args:
        path: A log of the task :data:`TASK`, ``.eval`` or ``.json``.
        corpus: The corpus that the evaluation was over.
        journal: The journal to write; by default where a run of that name would be.

    Returns:
        The journal, and how many answers are in it.

    Raises:
        ExchangeError: If it is no log, one of another task, or over another corpus.
        CradleError: If an answer was edited, or the journal belongs to another run.
    """
    log = _read(path)
    record = _record(log, corpus, path)
    if record.corpus_fingerprint != corpus.fingerprint:
        raise ExchangeError(
            f"{paths.shown(path)}: the evaluation was over {record.corpus} "
            f"({record.corpus_fingerprint}), this is {corpus.name} ({corpus.fingerprint}). "
            "Name its corpus with `--corpus`."
        )
    template = load_template(record.prompt)
    if template.hash != record.prompt_hash:
        raise ExchangeError(
            f"{paths.shown(path)}: asked with another prompt template {record.prompt!r} "
            f"({record.prompt_hash}, here {template.hash}). Import it where that template is."
        )
    taken: list[Prediction] = []
    for sample in log.samples or ():
        lines = sample.store.get(ANSWERS, [])
        answers = read_answers(lines, record, f"{paths.shown(path)}, sample {sample.id}")
        found = corpus.by_id.get(str(sample.id))
        fitting = Session(found, template, record.history, answers).taken if found else []
        if len(fitting) < len(answers) or sample.epoch != 1:
            raise ExchangeError(
                f"{paths.shown(path)}: sample {sample.id}, epoch {sample.epoch}: "
                f"{len(fitting)} of its {len(answers)} answers are to a question of "
                f"{corpus.name}. A log is imported as it was written, with one epoch."
            )
        taken += fitting
    if not taken:
        raise ExchangeError(f"{paths.shown(path)}: there is no answer in this log.")
    target = journal or paths.RUNS / corpus.name / f"{record.model}.jsonl"
    with Journal.open(target, record) as opened:
        for prediction in taken:
            if prediction not in opened.stored(prediction.dialogue):
                opened.append(prediction)
    return target, len(taken)


def _sample(
    name: str,
    part: Corpus,
    place: int,
    lines: Mapping[str, list[Prediction]],
    record: Record,
    logs: Any,
) -> EvalSample:
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput
    from inspect_ai.scorer import Score

    dialogue, own = part.dialogues[place], lines[name]
    by_turn = {answer.turn: answer for answer in own}
    messages: list[Any] = []
    said: list[str] = []
    for turn in dialogue.turns:
        said.append(f"{turn.speaker}: {turn.text}")
        if turn.asked:
            messages += [
                ChatMessageUser(content="\n".join(said)),
                ChatMessageAssistant(content=by_turn[turn.turn_id].answer),
            ]
            said = []
    gold = [format_mask(turn.mask) for turn in dialogue.user_turns]
    tagged = [format_mask(by_turn[turn.turn_id].mask) for turn in dialogue.user_turns]
    right = sum(a == b for a, b in zip(gold, tagged, strict=True))
    answers = [to_line(answer) for answer in own]
    return logs.EvalSample(
        id=name,
        epoch=1,
        input="\n".join(f"{turn.speaker}: {turn.text}" for turn in dialogue.turns),
        target=gold,
        messages=messages,
        output=ModelOutput.from_content(record.model, messages[-1].content),
        scores={"labels": Score(value=right / len(gold), answer=" | ".join(tagged))},
        store={ANSWERS: answers},
    )


def _read(path: Path) -> EvalLog:
    _require_inspect()
    from inspect_ai.log import read_eval_log

    if not path.is_file():
        raise ExchangeError(f"{paths.shown(path)}: no such file. Name a log, .eval or .json.")
    try:
        log = read_eval_log(str(path), resolve_attachments=True)
    except Exception as error:  # Whatever the reader of a damaged log raises.
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ExchangeError(f"{paths.shown(path)}: is no log of Inspect ({reason}).") from None
    if log.eval.task.rpartition("/")[2] != TASK:
        raise ExchangeError(
            f"{paths.shown(path)}: is a log of the task {log.eval.task!r:.80}, expected {TASK!r}. "
            f"Make one with `inspect eval cradle_lib/{TASK}`."
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
        raise ExchangeError(
            f"{paths.shown(path)}: does not say how it was asked ({reason}). "
            f"Import a log of cradle_lib/{TASK}, or one that `cradle export inspect` made."
        ) from None


_SETTINGS: Final = ("temperature", "top_p", "top_k", "seed", "max_tokens", "reasoning_effort")


def _require_inspect() -> None:
    try:
        import inspect_ai  # noqa: F401
    except ImportError:
        raise ExchangeError(
            "logs of Inspect need the package inspect-ai, which is not installed. Install it with "
            f"`{paths.install_command('inspect')}`."
        ) from None
