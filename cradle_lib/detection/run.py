"""Carries questions to a model and keeps the answers: journal, resume, consent, money, progress.

A run asks about the turns of a corpus; other rooms have questions of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.api.client import Remote
from cradle_lib.detection.api.money import (
    Budget,
    Place,
    highest_cost,
    longest_prompts,
    usage_of,
)
from cradle_lib.detection.api.network import host_of, proxy_of
from cradle_lib.detection.baselines.function import Function
from cradle_lib.detection.engine import (
    Emit,
    Engine,
    Options,
    Questions,
    Sequential,
    WatchedEmit,
    code_of,
    failure,
    make_engine,
    revision_of,
    weights_revision,
)
from cradle_lib.detection.journal import Journal, last_record, read_answers
from cradle_lib.detection.journal_paths import journal_path, other_shards
from cradle_lib.detection.local.chat import today
from cradle_lib.detection.model import Model
from cradle_lib.detection.parsing import Outcome
from cradle_lib.detection.selection import choose_dialogues
from cradle_lib.detection.session import Prediction, Session
from cradle_lib.errors import EngineError, JournalError
from cradle_lib.formatting import dollars
from cradle_lib.prompts import load_template
from cradle_lib.record import History, Record

Consent = Callable[[str], bool]
# Exceptions of a model in a row that stop a run: it is broken, and not a question.
_MOST_EXCEPTIONS: Final = 3


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come.

    Attributes:
        done: Questions answered, those of earlier starts included.
        total: Questions of the run.
        stored: Those of ``done`` that were answered before this start.
        tokens_in: Prompt tokens of this start, where the engine tells which it reused.
        tokens_cached: Those of them that were not computed again.
        spent: Dollars that this start's calls cost, where the service says what they used and
            the model has prices.
    """

    done: int
    total: int
    stored: int
    tokens_in: int = 0
    tokens_cached: int = 0
    spent: float = 0.0

    def after(self, prediction: Prediction, more: int = 1) -> Progress:
        """Counts an answer, with which so many questions are answered."""
        tells = prediction.tokens_in is not None and prediction.tokens_cached is not None
        return replace(
            self,
            done=self.done + more,
            tokens_in=self.tokens_in + ((prediction.tokens_in or 0) if tells else 0),
            tokens_cached=self.tokens_cached + ((prediction.tokens_cached or 0) if tells else 0),
        )


def run(
    model: Model,
    corpus: Corpus,
    *,
    out: Path | str = paths.RUNS,
    history: History = "self",
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    shard: str | None = None,
    options: Options | None = None,
    progress: Callable[[Progress], None] | None = None,
    consent: Consent | None = None,
    max_cost: float | None = None,
    function: Function | None = None,
) -> Path:
    """Runs a model over a corpus, or resumes an earlier start.

    Answers to questions that are still the same are kept; failed ones are asked again.

    Args:
        model: An entry of the registry.
        corpus: The corpus.
        out: Folder for runs, in which :func:`journal_path` chooses the place; or the
            journal itself, if the name ends with ``.jsonl``.
        history: Whose labels the history shows.
        limit: Only this many dialogues, from the start.
        sample: Only this many dialogues, chosen by :func:`.sample_dialogues`.
        seed: Seed of the sample.
        shard: ``i/n``: of the dialogues chosen, those whose position modulo n is i
            (i from 0), so that n processes can share a run.
        options: How this machine runs the model.
        progress: Called at the start and after every answer.
        consent: Asked, with a sentence that says which text goes where, before the text of
            dialogues leaves the machine for the first time. What was agreed to is kept in the
            record: only further dialogues, or changed ones, are asked about again.
        max_cost: Most dollars for this run, all its starts together; it stops before a call
            that could cost more. It is kept in the record and binds later starts that name no
            other; ``None`` for what is recorded, or no limit.
        function: What answers, if the entry's engine is ``function``.

    Returns:
        The journal's path.

    Raises:
        CradleError: If the run can't start, or can't go on. What was answered is kept.
    """
    chosen = choose_dialogues(corpus, limit, sample, seed, shard)
    template = load_template(model.prompt)
    out = Path(out)
    path = out if out.suffix == ".jsonl" else journal_path(model, corpus, history, shard, out)
    ask(
        model,
        corpus,
        lambda stored: [Session(d, template, history, stored[d.id]) for d in chosen],
        path=path,
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
        asked=[dialogue.id for dialogue in chosen],
        total=sum(len(dialogue.user_turns) for dialogue in chosen),
        what=f"dialogues of {corpus.name}",
        sizes=lambda: longest_prompts(chosen, template, history),
        options=options,
        progress=progress,
        consent=consent,
        max_cost=max_cost,
        function=function,
    )
    return path


def ask(
    model: Model,
    corpus: Corpus,
    sessions: Callable[[Mapping[str, Sequence[Prediction]]], Sequence[Questions]],
    *,
    path: Path,
    record: Mapping[str, Any],
    asked: Sequence[str],
    total: int,
    what: str,
    sizes: Callable[[], Mapping[Place, int]],
    options: Options | None = None,
    progress: Callable[[Progress], None] | None = None,
    consent: Consent | None = None,
    max_cost: float | None = None,
    function: Function | None = None,
) -> Record:
    """Asks a model, or goes on where an earlier start stopped.

    Answers to questions that are still the same are kept; failed ones are asked again.

    ``sessions`` makes the sessions, given for each dialogue of ``asked`` what earlier starts
    answered, failed answers left out. ``record`` has the fields of the record that say what is
    asked; ``total`` counts all questions; ``what`` says what is sent, such as ``dialogues of
    surrogate-test``; ``sizes`` gives the most UTF-8 bytes of each prompt, by dialogue and turn. A
    trained baseline finds its train split beside ``corpus``. All that follows is as for
    :func:`.run`.

    Raises:
        CradleError: If the run can't start, or can't go on. What was answered is kept.
    """
    before = None
    # What is wrong with a journal is said where it is opened.
    with suppress(JournalError):
        before = last_record(path)
    if before is not None and model.computes_here and before.weights == model.weights:
        # Keep the commit of the first start, so that a resumed run uses the same weights.
        revision = model.revision or weights_revision(before.revision)
        model = model.model_copy(update={"revision": revision})
    options, budget = options or Options(), None
    engine = make_engine(model, corpus, options) if function is None else function
    made = Record.create(
        model=model.id,
        name=model.name,
        group=model.group,
        engine=model.engine,
        weights=model.weights,
        revision=revision_of(engine, model),
        tokenizer=engine.tokenizer,
        decoding=model.decoding.settings if model.decoding else {},
        remote=model.remote,
        endpoint=model.base_url,
        proxy=proxy_of(model) if model.is_service else None,
        code=code_of(engine) if function is None else function.code,
        source=None if function is None else function.source,
        **record,
    )
    made = _set_up(made, engine) if before is None else _set_up_again(before, made, engine)
    made = _dated(made, engine, before, path)
    if before is not None and before.identity != made.identity:
        # A start that failed with other settings binds nobody.
        before, made = None, _set_up(made, engine)
    max_cost = before.max_cost if max_cost is None and before is not None else max_cost
    if max_cost is not None:
        answered = [] if before is None else read_answers(path)[1]
        budget = Budget(model, max_cost, sizes(), answered)
        options = replace(options, concurrency=budget.concurrency(options.concurrency))
        engine = make_engine(model, corpus, options)
        made = made.model_copy(update={"max_cost": max_cost})
    if model.remote:
        agreed: list[str] = []
        if before is not None and (before.proxy, before.corpus_fingerprint) == (
            made.proxy,
            made.corpus_fingerprint,
        ):
            # The same text was agreed to be sent to the same place.
            agreed = before.agreed or []
        known = set(agreed)
        if more := [dialogue for dialogue in asked if dialogue not in known]:
            prompts = [size for (dialogue, _), size in sizes().items() if dialogue not in known]
            require_consent(model, f"{len(more)} {what}", prompts, consent)
        made = made.model_copy(update={"agreed": [*agreed, *more]})
    engine.date = made.decoding.get("date")
    with Journal.open(path, made) as journal:
        stored = {
            dialogue: [p for p in journal.stored(dialogue) if p.outcome is not Outcome.FAILED]
            for dialogue in asked
        }
        report = progress or (lambda _: None)
        questions = sessions(stored)
        if before is not None and engine.date is None and any(q.remaining for q in questions):
            _require_no_date(engine, path)
        _drive(engine, model, journal, questions, total, budget, report)
    return made


def _set_up(made: Record, engine: Engine) -> Record:
    """Adds the settings of the model's checkpoint to the record."""
    return made.model_copy(update={"decoding": made.decoding | engine.checkpoint_decoding()})


def _set_up_again(before: Record, made: Record, engine: Engine) -> Record:
    """Completes the record of a later start.

    A finished run needs none of the model's files. Without them the record of the earlier start
    is taken.
    """
    if not made.decoding.get("from_checkpoint"):
        return made
    try:
        return _set_up(made, engine)
    except EngineError:
        return made.model_copy(update={"decoding": before.decoding | made.decoding})


def _dated(made: Record, engine: Engine, before: Record | None, path: Path) -> Record:
    """Records the date that the chat template prints, if it prints one.

    It is the entry's own, that of an earlier start or another shard of the same run, or today's.
    """
    if "date" in made.decoding:
        return made
    if before is not None:
        again = _with_date(made, before.decoding.get("date"))
        if again.identity == before.identity:
            return again
    for shard in other_shards(path):
        with suppress(JournalError):
            other = last_record(shard)
            again = _with_date(made, other.decoding.get("date"))
            if "date" in again.decoding and again.identity == other.identity:
                return again
    return _with_date(made, today()) if engine.asks_for_date() else made


def _with_date(record: Record, date: str | None) -> Record:
    return record.model_copy(
        update={"decoding": record.decoding | ({"date": date} if date else {})}
    )


def _require_no_date(engine: Engine, path: Path) -> None:
    """Refuses to go on with a run of an older version whose prompts show unrecorded dates."""
    if engine.asks_for_date():
        raise JournalError(
            f"{paths.shown(path)}: the chat template prints the date, and this run recorded none, "
            "so that its prompts can't be made again. Move the file away and start the run anew."
        )


def _drive(
    engine: Engine,
    model: Model,
    journal: Journal,
    sessions: Sequence[Questions],
    total: int,
    budget: Budget | None,
    report: Callable[[Progress], None],
) -> None:
    waiting = {s.prompt.dialogue: s for s in sessions if s.prompt is not None}
    left = {dialogue: session.remaining for dialogue, session in waiting.items()}
    stored = total - sum(left.values())
    now = Progress(stored, total, stored)
    prices, exceptions = model.prices, 0

    def charge(prediction: Prediction) -> None:
        nonlocal now
        journal.append(prediction)
        if prices is not None and (usage := usage_of(prediction)) is not None:
            now = replace(now, spent=now.spent + usage.cost(prices))
        if budget is not None:
            budget.add(prediction)
            # Prices belong to services only, which the registry sees to.
            if budget.exhausted and now.done < now.total and isinstance(engine, Remote):
                engine.stop(budget.state)

    def emit(prediction: Prediction) -> None:
        nonlocal now, exceptions
        before = left[prediction.dialogue]
        left[prediction.dialogue] = waiting[prediction.dialogue].remaining
        now = now.after(prediction, before - left[prediction.dialogue])
        charge(prediction)
        report(now)
        if prediction.error is not None:
            exceptions += 1
        elif prediction.outcome is not Outcome.FAILED:
            exceptions = 0
        if exceptions == _MOST_EXCEPTIONS:
            raise EngineError(
                f"{model.name}: {exceptions} questions in a row raised an exception, the last one "
                f"in dialogue {prediction.dialogue}, turn {prediction.turn}: {prediction.reason}. "
                f"The answers so far are kept in {paths.shown(journal.path)}; correct the cause "
                "and start the run again to go on."
            ) from prediction.error

    if isinstance(engine, Remote) and prices is not None:
        # A call that may be charged stands in the journal, also if it is made again.
        engine.lost = charge
    report(now)
    if budget is not None and waiting:
        budget.check()
    _answer_all(engine, list(waiting.values()), emit)


def _answer_all(engine: Engine, sessions: Sequence[Questions], emit: Emit) -> None:
    """Has an engine answer all questions, also if it raises an exception on some of them.

    Those of this library know on which. For an engine with a loop of its own the dialogues are then
    asked one at a time.
    """
    watched = WatchedEmit(emit)
    try:
        engine.answer_all(sessions, watched)
        return
    except Exception as error:
        own_loop = not isinstance(engine, Sequential | Remote)
        unanswered = any(session.prompt is not None for session in sessions)
        if not (own_loop and unanswered and watched.is_of_model(error)):
            raise
    for session in sessions:
        while session.prompt is not None:
            try:
                engine.answer_all([session], watched)
                break
            except Exception as error:
                if not watched.is_of_model(error) or session.prompt is None:
                    raise
                emit(session.answer(failure(error)))


def require_consent(
    model: Model, what: str, prompts: Iterable[int], consent: Consent | None
) -> None:
    """Asks whether text may be sent to a remote model.

    The question names the text, the host, the proxy and the model, and, if the model has prices,
    the most that prompts of these sizes in UTF-8 bytes can cost.

    Raises:
        EngineError: If it was not agreed to.
    """
    host, proxy = host_of(model), proxy_of(model)
    through = f" through the proxy {proxy}" if proxy else ""
    cost = ""
    if model.prices is not None:
        cost = f" It can cost {dollars(sum(highest_cost(model, n) for n in prompts))} at most."
    question = f"The text of {what} will be sent to {host}{through} ({model.name}).{cost} Send it?"
    if consent is None or not consent(question):
        raise EngineError(
            f"{model.name} is remote, and sending {what} to {host} "
            "was not agreed to. Agree with --yes, or in Python with `consent=lambda _: True`."
        )
