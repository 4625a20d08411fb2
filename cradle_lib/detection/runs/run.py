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
from typing import Any

from cradle_lib import paths
from cradle_lib.arguments import Positive, checked
from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection.baselines.function import Function
from cradle_lib.detection.models.addresses import host_of, proxy_of
from cradle_lib.detection.models.dates import today
from cradle_lib.detection.models.engine import (
    Consent,
    Engine,
    Options,
    Questions,
    code_of,
    make_engine,
    revision_of,
    weights_revision,
)
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.models.registry import function_entry, load_registry, resolve
from cradle_lib.detection.protocol.parsing import Outcome
from cradle_lib.detection.protocol.session import Prediction, Prompt, Session
from cradle_lib.detection.runs.costs import Budget, TurnKey, highest_cost, prompt_sizes
from cradle_lib.detection.runs.drive import drive
from cradle_lib.detection.runs.find_runs import (
    PAGE,
    find_journal,
    leave_out,
    load_named,
    load_run,
    other_runs,
    require_name,
)
from cradle_lib.detection.runs.journal import (
    Journal,
    joined_path,
    journal_files,
    latest_answers,
    read_answers,
)
from cradle_lib.detection.runs.matching import matching_journals, run_path
from cradle_lib.detection.runs.missing_run import missing_run
from cradle_lib.detection.runs.predictions import Predictions, load_predictions
from cradle_lib.detection.runs.run_names import renamed, with_distinct_names
from cradle_lib.detection.runs.selection import choose_dialogues
from cradle_lib.detection.runs.spending import Spending
from cradle_lib.detection.runs.stored_answers import run_files
from cradle_lib.errors import EngineError, JournalError, NoRunError, RegistryError
from cradle_lib.formatting import dollars
from cradle_lib.prompts import load_template
from cradle_lib.record import History, Record

Stored = Mapping[str, Sequence[Prediction]]


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

    A stored run is read only if it was made with the same settings. A run with other settings has
    a journal of its own.

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
        **settings: For an id or a spec: ``engine``, ``base_url``, ``key``, ``prompt``,
            ``neutralise``, and any decoding setting.

    Returns:
        The predictions, aligned to the dialogues that are answered completely; with ``limit`` or
        ``sample`` to those of them that were chosen.

    Raises:
        CradleError: If there is no such model, it can't run here, text may not be sent, or a page
            needs a run that was not made; the message has the command that makes it.
    """
    engine = None
    if isinstance(model, str | Model):
        entry = resolve(model, name=name, **settings)
    else:
        engine = Function(model, name, version)
        entry = function_entry(engine)
        if settings:
            raise RegistryError(f"{entry.name}: a function takes no {', '.join(settings)}")
    is_part = limit is not None or sample is not None
    if not is_part:
        sample = entry.sample
    wanted = choose_dialogues(corpus, limit, sample)
    found = None if engine else _stored(entry, corpus, history, wanted, paths.SHIPPED_RUNS)
    if found is None and (entry.kind == "baseline" or not os.environ.get(PAGE)):
        options = options or Options()
        journal = run_path(entry, corpus, history, notice=options.notice, on_any_change=True)
        path = run(
            entry,
            corpus,
            out=journal,
            history=history,
            limit=limit,
            sample=sample,
            options=options,
            engine=engine,
        )
        found = load_predictions(path, corpus, partial=True)
    if found is None:
        found = _stored(entry, corpus, history, wanted)
    if found is None and not is_part and find_journal(entry, corpus, history) is not None:
        found = load_run(entry, corpus, history, partial=True)
    if found is None:
        error = missing_run(entry, corpus, history, limit, sample)
        raise NoRunError(f"{error} A page runs no model.")
    if is_part:
        found = _part(found, corpus, wanted)
    return found if entry.group == "own" and name is None else renamed(found, entry.name)


def _stored(
    entry: Model, corpus: Corpus, history: History, wanted: Sequence[Dialogue], *folders: Path
) -> Predictions | None:
    """Loads the first stored run that answers a question about all wanted dialogues."""
    ids = {dialogue.id for dialogue in wanted}
    for path in matching_journals(entry, corpus, history, *folders):
        with suppress(NoRunError):
            found = load_predictions(path, corpus, partial=True)
            if ids <= {dialogue.id for dialogue in found.corpus}:
                return found
    return None


def _part(found: Predictions, corpus: Corpus, wanted: Sequence[Dialogue]) -> Predictions:
    """Restricts a run to the dialogues that were asked for."""
    ids = {dialogue.id for dialogue in wanted}
    places = [place for place, dialogue in enumerate(found.corpus) if dialogue.id in ids]
    if len(places) < len(found.corpus):
        part = found.corpus.subset(places, f"{corpus.name}[{len(places)}]")
        found = found.subset(part)
    chosen = None if len(ids) == len(corpus) else [dialogue.id for dialogue in wanted]
    return replace(found, record=found.record.model_copy(update={"dialogues": chosen}))


@checked
def default_runs(corpus: Corpus, models: Sequence[str] = ()) -> list[Predictions]:
    """Runs baselines that have not been run, and loads the stored runs of other models.

    Nothing is sent. Models that need hardware, hours or money are not run.

    Args:
        corpus: The corpus.
        models: As for :func:`.stored_runs`.

    Returns:
        The predictions in the order of the models. A model without a run is left out, as is a
        baseline without data to learn from. If a run can't be read, the reason is written to the
        standard error stream.

    Raises:
        RegistryError: If there is no such model.
        CradleError: If a baseline can't be run.
    """
    registry = load_registry()
    found: list[Predictions] = []
    for name in models or [entry.id for entry in registry.values() if entry.default]:
        require_name(name, corpus)
        with leave_out():
            if name in registry and registry[name].kind == "baseline":
                with suppress(EngineError):  # The corpus has no train split.
                    found.append(run_model(registry[name], corpus))
                    continue
            if run_files(name, corpus):
                found.append(load_named(name, corpus))
    return with_distinct_names(found if models else found + other_runs(corpus, found))


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
    engine: Engine | None = None,
) -> Path:
    """Runs a model over a corpus, or resumes an earlier start.

    Answers to questions that are still the same are kept; failed ones are asked again.

    Args:
        model: An entry of the registry.
        corpus: The corpus.
        out: Folder for runs, in which :func:`.run_path` chooses the journal; or the path of the
            journal, if it ends with ``.jsonl``.
        history: Labels that the history shows: ``self``, ``gold`` or ``none``.
        limit: Maximum number of dialogues, from the start of the corpus or of the sample.
        sample: Number of dialogues to draw with :func:`.sample_dialogues`.
        shard: ``i/n``: only the selected dialogues whose position modulo n is i (i from 0), so that
            n processes can share a run.
        options: Execution settings, including the maximum cost.
        engine: The engine, if it is already made.

    Returns:
        The journal's path.

    Raises:
        CradleError: If the run can't start or continue. Answers so far are kept.
    """
    chosen = choose_dialogues(corpus, limit, sample, shard)
    template = load_template(model.prompt)
    out = Path(out)
    options = options or Options()
    path = out
    if path.suffix != ".jsonl":
        path = run_path(model, corpus, history, shard, out, options.notice)
    task = Task(
        record={
            "prompt": model.prompt,
            "prompt_hash": template.hash,
            "history": history,
            "neutralise": None if model.neutralise else False,
            "corpus": corpus.name,
            "corpus_fingerprint": corpus.fingerprint,
            "corpus_file": corpus.file_key,
            "dialogues": None if len(chosen) == len(corpus) else [d.id for d in chosen],
            "shard": shard,
        },
        sessions=lambda stored: [
            Session(
                dialogue,
                template,
                history,
                stored.get(dialogue.id, ()),
                neutralise=model.neutralise,
            )
            for dialogue in chosen
        ],
        total=sum(len(dialogue.user_turns) for dialogue in chosen),
        texts=f"dialogues of {corpus.name}",
        sizes=lambda: prompt_sizes(chosen, template, history, neutralise=model.neutralise),
    )
    ask(model, corpus, task, path, options, engine)
    return path


def ask(
    model: Model,
    corpus: Corpus,
    task: Task,
    path: Path,
    options: Options | None = None,
    engine: Engine | None = None,
) -> Record:
    """Asks a model the questions of a task, or resumes an earlier start.

    Answers to questions that are still the same are kept; failed ones are asked again. If the code,
    the data or the prompt of a baseline changed, its journal is renamed and made again. A trained
    baseline learns from the train split of ``corpus``. The journal is ``path``; ``options`` and
    ``engine`` are those of :func:`.run`.

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
    engine = engine or make_engine(model, corpus, options)
    record = _make_record(model, engine, task, path, before)
    if before is not None and before.identity != record.identity:
        if model.kind == "baseline" and before.is_version_of(record):
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
    spending = None
    if max_cost is not None:
        record = record.model_copy(update={"max_cost": max_cost})
        budget = Budget(model, max_cost, sizes(), answered)
        spending = Spending(budget, options.concurrency, engine, model.name)
    engine.date = record.decoding.get("date")
    usable: dict[str, list[Prediction]] = {}
    for prediction in latest_answers(answered):
        if prediction.outcome is not Outcome.FAILED:
            usable.setdefault(prediction.dialogue, []).append(prediction)
    sessions = [session for session in task.sessions(usable) if session.prompt is not None]
    if before is not None and record.dialogues is not None and not sessions:
        # A start that asks nothing new does not restrict a larger run to its own dialogues.
        record = record.model_copy(update={"dialogues": before.dialogues})
    if model.remote and sessions:
        sent = {session.prompt.dialogue for session in sessions if session.prompt}
        prompts = [size for (dialogue, _), size in sizes().items() if dialogue in sent]
        require_consent(model, f"{len(sent)} {task.texts}", prompts, options.consent)
    with Journal.open(path, record) as journal:
        drive(engine, model, journal, sessions, task.total, spending, options)
    return record


def _make_record(
    model: Model, engine: Engine, task: Task, path: Path, before: Record | None
) -> Record:
    """Makes the record of a start, with all settings that affect answers."""
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
        code=engine.code or code_of(type(engine)),
        source=engine.source,
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
