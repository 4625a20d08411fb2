"""Runs a model over a corpus: journal, resume, consent, budget and progress.

:func:`run_model` and :func:`default_runs` take models by name, :func:`run` takes an entry of the
registry, and :func:`ask` also accepts questions that are not about the turns of a corpus.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.arguments import Positive, checked
from cradle_lib.corpus import Corpus
from cradle_lib.detection.api.client import Remote
from cradle_lib.detection.api.money import Budget, TurnKey, highest_cost, prompt_sizes, usage_of
from cradle_lib.detection.api.network import host_of, proxy_of
from cradle_lib.detection.baselines.function import Function
from cradle_lib.detection.engine import (
    Consent,
    Engine,
    Options,
    Progress,
    Questions,
    code_of,
    make_engine,
    revision_of,
    weights_revision,
)
from cradle_lib.detection.find_runs import PAGE, load_run, other_runs
from cradle_lib.detection.journal import (
    Journal,
    joined_path,
    journal_files,
    journal_path,
    latest_answers,
    read_answers,
)
from cradle_lib.detection.local.chat import today
from cradle_lib.detection.model import Model
from cradle_lib.detection.parsing import Outcome
from cradle_lib.detection.predictions import Predictions
from cradle_lib.detection.registry import load_registry, resolve
from cradle_lib.detection.selection import choose_dialogues
from cradle_lib.detection.session import Prediction, Prompt, Session
from cradle_lib.errors import EngineError, JournalError, NoRunError, RegistryError
from cradle_lib.formatting import dollars
from cradle_lib.prompts import load_template
from cradle_lib.record import History, Record

Stored = Mapping[str, Sequence[Prediction]]
# Consecutive exceptions that stop a run: they point to the model and not to one question.
_MAX_EXCEPTIONS: Final = 3


@dataclass(frozen=True)
class Task:
    """The questions of a run, and how its record describes them.

    Attributes:
        record: Fields of the record that describe the questions.
        sessions: Makes the sessions, given the usable answers of earlier starts by dialogue.
        total: Number of all questions.
        texts: Describes the text sent to a remote model, such as ``dialogues of surrogate-test``.
        sizes: Calculates the maximum size of each prompt in UTF-8 bytes, by dialogue and turn.
    """

    record: Mapping[str, Any]
    sessions: Callable[[Stored], Sequence[Questions]]
    total: int
    texts: str
    sizes: Callable[[], Mapping[TurnKey, int]]


@checked
def run_model(
    model: str | Model | Callable[[Prompt], object],
    corpus: Corpus,
    history: History = "self",
    *,
    name: str | None = None,
    version: str | None = None,
    limit: Positive | None = None,
    sample: Positive | None = None,
    options: Options | None = None,
    **settings: Any,
) -> Predictions:
    """Runs a model over a corpus, or resumes an earlier start.

    While the book is built, only baselines and functions are run. For every other model the
    existing journal is read, because a run may cost hours or money; only ``cradle infer`` or your
    own call extends it.

    Args:
        model: An id in ``models.yml``; a spec such as ``hf:./folder``, ``hf:ORG/NAME``,
            ``openai:NAME`` or ``anthropic:NAME``; or a function that takes a
            :class:`~cradle_lib.detection.Prompt` and returns the text of an answer.
        corpus: The corpus.
        history: Labels that the history shows: ``self``, ``gold`` or ``none``.
        name: Display name of a function or a spec.
        version: Version of the data and weights that a function uses, which are not part of its
            source.
        limit: Maximum number of dialogues, from the start of the corpus or of the sample.
        sample: Number of dialogues to draw, stratified by scenario and timing.
        options: Execution settings (:class:`~cradle_lib.detection.Options`), such as ``device``,
            ``concurrency`` (parallel calls), ``progress``, ``consent`` (called with the
            destination before text leaves the machine) and ``max_cost`` (dollars, over all
            starts). By default nothing is sent.
        **settings: For a spec: ``engine``, ``base_url``, ``key``, and any decoding setting.

    Returns:
        The predictions, aligned to the dialogues that are answered completely.

    Raises:
        CradleError: If there is no such model, it can't run here, its journal was made with
            other settings, or text may not be sent.
    """
    function = None
    if isinstance(model, str | Model):
        entry = resolve(model, name=name, **settings)
    else:
        function = Function(model, name, version)
        entry = function.model
        if settings:
            raise RegistryError(f"{entry.name}: a function takes no {', '.join(settings)}")
    shipped = journal_path(entry, corpus, history, out=paths.SHIPPED_RUNS)
    if not shipped.exists() and (entry.kind == "baseline" or not os.environ.get(PAGE)):
        if sample is None and limit is None:
            sample = entry.sample
        run(
            entry,
            corpus,
            out=paths.RUNS,
            history=history,
            limit=limit,
            sample=sample,
            options=options,
            function=function,
        )
    return load_run(entry, corpus, history, partial=True)


@checked
def default_runs(corpus: Corpus, models: Sequence[str] = ()) -> list[Predictions]:
    """Runs baselines that have not been run, and loads the stored runs of other models.

    Nothing is sent. Models that need hardware, hours or money are not run.

    Args:
        corpus: The corpus.
        models: Ids in the registry, or specs. By default, the models of the default set, followed
            by :func:`.other_runs`.

    Returns:
        The predictions in the order of the models. A model without a run is left out, as is a
        baseline without data to learn from.

    Raises:
        CradleError: As :func:`run_model`.
    """
    registry = load_registry()
    entries = [resolve(name, registry) for name in models]
    found: list[Predictions] = []
    for entry in entries or [entry for entry in registry.values() if entry.default]:
        with suppress(NoRunError):
            if entry.kind == "baseline":
                with suppress(EngineError):  # The corpus has no train split.
                    found.append(run_model(entry, corpus))
                    continue
            found.append(load_run(entry, corpus, partial=True))
    return found if models else found + other_runs(corpus)


def run(
    model: Model,
    corpus: Corpus,
    *,
    out: Path | str = paths.RUNS,
    history: History = "self",
    limit: int | None = None,
    sample: int | None = None,
    shard: str | None = None,
    options: Options | None = None,
    function: Function | None = None,
) -> Path:
    """Runs a model over a corpus, or resumes an earlier start.

    Answers to questions that are still the same are kept; failed ones are asked again.

    Args:
        model: An entry of the registry.
        corpus: The corpus.
        out: Folder for runs, in which :func:`journal_path` names the journal; or the path of the
            journal, if it ends with ``.jsonl``.
        history: Labels that the history shows: ``self``, ``gold`` or ``none``.
        limit: Maximum number of dialogues, from the start of the corpus or of the sample.
        sample: Number of dialogues to draw with :func:`.sample_dialogues`.
        shard: ``i/n``: only the selected dialogues whose position modulo n is i (i from 0), so that
            n processes can share a run.
        options: Execution settings, including the maximum cost.
        function: The engine, if the entry's engine is ``function``.

    Returns:
        The journal's path.

    Raises:
        CradleError: If the run can't start or continue. Answers so far are kept.
    """
    chosen = choose_dialogues(corpus, limit, sample, shard)
    template = load_template(model.prompt)
    out = Path(out)
    path = out if out.suffix == ".jsonl" else journal_path(model, corpus, history, shard, out)
    task = Task(
        record={
            "prompt": model.prompt,
            "prompt_hash": template.hash,
            "history": history,
            "corpus": corpus.name,
            "corpus_fingerprint": corpus.fingerprint,
            "corpus_file": corpus.file_key,
            "dialogues": None if len(chosen) == len(corpus) else [d.id for d in chosen],
            "shard": shard,
        },
        sessions=lambda stored: [
            Session(dialogue, template, history, stored.get(dialogue.id, ())) for dialogue in chosen
        ],
        total=sum(len(dialogue.user_turns) for dialogue in chosen),
        texts=f"dialogues of {corpus.name}",
        sizes=lambda: prompt_sizes(chosen, template, history),
    )
    ask(model, corpus, task, path, options, function)
    return path


def ask(
    model: Model,
    corpus: Corpus,
    task: Task,
    path: Path,
    options: Options | None = None,
    function: Function | None = None,
) -> Record:
    """Asks a model the questions of a task, or resumes an earlier start.

    Answers to questions that are still the same are kept; failed ones are asked again. If the code
    or the settings of a baseline changed, its journal is renamed and made again. A trained baseline
    learns from the train split of ``corpus``. The journal is ``path``; ``options`` and ``function``
    are those of :func:`.run`.

    Raises:
        CradleError: If the run can't start or continue. Answers so far are kept.
    """
    options = options or Options()
    before: Record | None = None
    answered: list[Prediction] = []
    with suppress(JournalError):  # A damaged journal is refused when it is opened.
        before, answered = read_answers(path)
    if before is not None and model.kind == "local" and before.weights == model.weights:
        # Keep the commit of the first start, so that a resumed run uses the same weights.
        revision = model.revision or weights_revision(before.revision)
        model = model.model_copy(update={"revision": revision})
    engine: Engine = function or make_engine(model, corpus, options)
    record = _make_record(model, engine, task, path, before)
    if before is not None and before.identity != record.identity:
        if model.kind == "baseline" and before.model == model.id:
            outdated = path.replace(path.with_suffix(".outdated"))
            options.notice(
                f"{paths.shown(path)}: was made with other code or settings, and is made again. "
                f"The previous file was renamed to {paths.shown(outdated)}."
            )
        # Answers and limits of a start with other settings do not apply.
        before, answered = None, []
    if before is not None:
        record = record.model_copy(update={"fallback": before.fallback})
    engine.fallback = record.fallback
    max_cost = options.max_cost
    if max_cost is None and before is not None:
        max_cost = before.max_cost
    sizes = cache(task.sizes)
    budget = None
    if max_cost is not None:
        record = record.model_copy(update={"max_cost": max_cost})
        budget = Budget(model, max_cost, sizes(), answered)
        if isinstance(engine, Remote):
            # Parallel calls could exceed the limit together.
            engine.options = replace(options, concurrency=budget.limit_calls(options.concurrency))
    engine.date = record.decoding.get("date")
    usable: dict[str, list[Prediction]] = {}
    for prediction in latest_answers(answered):
        if prediction.outcome is not Outcome.FAILED:
            usable.setdefault(prediction.dialogue, []).append(prediction)
    sessions = [session for session in task.sessions(usable) if session.prompt is not None]
    if model.remote and sessions:
        sent = {session.prompt.dialogue for session in sessions if session.prompt}
        prompts = [size for (dialogue, _), size in sizes().items() if dialogue in sent]
        require_consent(model, f"{len(sent)} {task.texts}", prompts, options.consent)
    with Journal.open(path, record) as journal:
        _drive(engine, model, journal, sessions, task.total, budget, options)
    return record


def _make_record(
    model: Model, engine: Engine, task: Task, path: Path, before: Record | None
) -> Record:
    """Makes the record of a start, with all settings that affect answers."""
    function = engine if isinstance(engine, Function) else None
    decoding = model.decoding.settings if model.decoding else {}
    record = Record.create(
        model=model.id,
        name=model.name,
        group=model.group,
        engine=model.engine,
        weights=model.weights,
        revision=revision_of(engine, model),
        tokenizer=engine.tokenizer,
        decoding=decoding | engine.checkpoint_decoding(),
        remote=model.remote,
        endpoint=model.base_url,
        proxy=proxy_of(model) if model.kind == "service" else None,
        code=function.code if function else code_of(engine),
        source=function.source if function else None,
        **task.record,
    )
    return record if "date" in record.decoding else _with_date(record, engine, path, before)


def _with_date(record: Record, engine: Engine, path: Path, before: Record | None) -> Record:
    """Records the date that the chat template prints, if it prints one.

    It is that of an earlier start or of another shard of the same run, or else today's.
    """

    def dated(date: str | None) -> Record:
        added = {"date": date} if date else {}
        return record.model_copy(update={"decoding": record.decoding | added})

    with suppress(JournalError):
        files = journal_files(joined_path(path))
        others = (read_answers(file)[0] for file in files if file != path and file.exists())
        for earlier in chain([before] if before else [], others):
            again = dated(earlier.decoding.get("date"))
            # Only a start whose other settings are the same counts.
            if again.identity == earlier.identity:
                return again
    return dated(today() if engine.asks_for_date() else None)


def _drive(
    engine: Engine,
    model: Model,
    journal: Journal,
    sessions: Sequence[Questions],
    total: int,
    budget: Budget | None,
    options: Options,
) -> None:
    """Asks the remaining questions; writes, charges and reports each answer."""
    waiting = {session.prompt.dialogue: session for session in sessions if session.prompt}
    left = {dialogue: session.remaining for dialogue, session in waiting.items()}
    stored = total - sum(left.values())
    now = Progress(stored, total, stored)
    exceptions = 0

    def write_and_charge(prediction: Prediction) -> None:
        nonlocal now
        if journal.record_fallback(engine.fallback) and stored:
            options.notice(
                f"{model.name}: {stored} questions were answered at an earlier start, without this "
                "fallback. If that was with another version or machine, make the run again."
            )
        journal.append(prediction)
        if model.prices is not None and (usage := usage_of(prediction)) is not None:
            now = replace(now, spent=now.spent + usage.cost(model.prices))
        if budget is not None:
            budget.add(prediction)
            # Only services have prices; the registry checks this.
            if budget.exhausted and now.done < now.total and isinstance(engine, Remote):
                engine.stop(budget.state)

    def emit(prediction: Prediction) -> None:
        nonlocal now, exceptions
        # Falls by more than one if the next questions have stored answers.
        remaining = waiting[prediction.dialogue].remaining
        now = replace(now, done=now.done + left[prediction.dialogue] - remaining)
        left[prediction.dialogue] = remaining
        write_and_charge(prediction)
        options.progress(now)
        if prediction.error is not None:
            exceptions += 1
        elif prediction.outcome is not Outcome.FAILED:
            exceptions = 0
        if exceptions == _MAX_EXCEPTIONS:
            raise EngineError(
                f"{model.name}: {exceptions} questions in a row raised an exception, the last one "
                f"in dialogue {prediction.dialogue}, turn {prediction.turn}: {prediction.reason}. "
                f"The answers so far are kept in {paths.shown(journal.path)}; correct the cause "
                "and start the run again to go on."
            ) from prediction.error

    if isinstance(engine, Remote) and model.prices is not None:
        # A call that may be charged is recorded in the journal, even if it is retried.
        engine.on_lost_call = write_and_charge
    options.progress(now)
    if budget is not None and waiting:
        budget.check()
    engine.answer_all(sessions, emit)


def require_consent(
    model: Model, texts: str, prompts: Iterable[int], consent: Consent | None
) -> None:
    """Asks whether text may be sent to a remote model.

    The question names the text, the host, the proxy and the model. If the model has prices, it
    also names the maximum cost of ``prompts``, the prompts' sizes in UTF-8 bytes.

    Raises:
        EngineError: If consent is not given.
    """
    host, proxy = host_of(model), proxy_of(model)
    through = f" through the proxy {proxy}" if proxy else ""
    cost = ""
    if model.prices is not None:
        cost = f" It can cost {dollars(sum(highest_cost(model, n) for n in prompts))} at most."
    question = f"The text of {texts} will be sent to {host}{through} ({model.name}).{cost} Send it?"
    if consent is None or not consent(question):
        raise EngineError(
            f"{model.name} is remote, and sending {texts} to {host} "
            "was not agreed to. Agree with --yes, or in Python with `Options(consent=...)`."
        )
