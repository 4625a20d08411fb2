"""A run: registry entry, sessions, journal and engine joined together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.api.proxy import host_of, proxy_of
from cradle_lib.detection.api.remote import Remote
from cradle_lib.detection.baselines.function import UserFunction
from cradle_lib.detection.cost.estimate import longest_prompts
from cradle_lib.detection.cost.money import Budget
from cradle_lib.detection.engine import Options, code_of, make_engine
from cradle_lib.detection.journal import Journal, read_answers
from cradle_lib.detection.journal_paths import journal_path
from cradle_lib.detection.model import Model
from cradle_lib.detection.parsing import Outcome
from cradle_lib.detection.selection import choose_dialogues
from cradle_lib.detection.session import Prediction, Session
from cradle_lib.errors import EngineError, JournalError
from cradle_lib.prompts import load_template
from cradle_lib.record import History, Record

Consent = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come.

    Attributes:
        done: User turns answered, those of earlier starts included.
        total: User turns of the dialogues chosen.
        stored: Those of ``done`` that were answered before this start.
        tokens_in: Prompt tokens of this start, where the engine tells which it reused.
        tokens_cached: Those of them that were not computed again.
    """

    done: int
    total: int
    stored: int
    tokens_in: int = 0
    tokens_cached: int = 0

    def after(self, prediction: Prediction) -> Progress:
        """Counts one more answer."""
        tells = prediction.tokens_in is not None and prediction.tokens_cached is not None
        return replace(
            self,
            done=self.done + 1,
            tokens_in=self.tokens_in + ((prediction.tokens_in or 0) if tells else 0),
            tokens_cached=self.tokens_cached + ((prediction.tokens_cached or 0) if tells else 0),
        )


def run(
    model: Model,
    corpus: Corpus,
    *,
    out: Path = paths.RUNS,
    history: History = "self",
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    shard: str | None = None,
    options: Options | None = None,
    progress: Callable[[Progress], None] | None = None,
    consent: Consent | None = None,
    max_cost: float | None = None,
    function: UserFunction | None = None,
) -> Path:
    """Runs a model over a corpus, or goes on where an earlier start stopped.

    Answers to questions that are still the same are kept; failed ones are asked again.

    Args:
        model: An entry of the registry.
        corpus: The corpus.
        out: Folder for runs, in which :func:`journal_path` chooses the place; or the
            journal itself, if the name ends with ``.jsonl``.
        history: Whose tags the history shows.
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
    path = out if out.suffix == ".jsonl" else journal_path(model, corpus, history, shard, out)
    before, answered = _begun(path)
    options, budget = options or Options(), None
    model = _as_begun(model, before)
    engine = make_engine(model, corpus, options) if function is None else function.engine
    record = Record.create(
        model=model.id,
        name=model.name,
        group=model.group,
        engine=model.engine,
        weights=model.weights,
        revision=engine.revision or model.revision,
        prompt=model.prompt,
        prompt_hash=template.hash,
        decoding=model.decoding.settings if model.decoding else {},
        history=history,
        corpus=corpus.name,
        corpus_fingerprint=corpus.fingerprint,
        corpus_file=corpus.file_key,
        dialogues=None if len(chosen) == len(corpus) else [d.id for d in chosen],
        shard=shard,
        remote=model.remote,
        endpoint=model.base_url,
        proxy=proxy_of(model) if model.is_service else None,
        code=code_of(engine) if function is None else function.code,
        source=None if function is None else function.source,
    )
    if before is not None and before.identity != record.identity:
        # A start that failed with other settings binds nobody.
        before, answered = None, []
    max_cost = before.max_cost if max_cost is None and before is not None else max_cost
    if max_cost is not None:
        budget = Budget(model, max_cost, longest_prompts(chosen, template, history), answered)
        options = replace(options, concurrency=budget.concurrency(options.concurrency))
        engine = make_engine(model, corpus, options)
        record = record.model_copy(update={"max_cost": max_cost})
    if model.remote:
        agreed = _agreed(before, record)
        known = set(agreed)
        if more := [dialogue.id for dialogue in chosen if dialogue.id not in known]:
            _require_consent(model, corpus, len(more), consent)
        record = record.model_copy(update={"agreed": [*agreed, *more]})
    with Journal.open(path, record) as journal:
        sessions = [
            Session(
                dialogue,
                template,
                history,
                (p for p in journal.stored(dialogue.id) if p.outcome is not Outcome.FAILED),
            )
            for dialogue in chosen
        ]
        total = sum(len(dialogue.user_turns) for dialogue in chosen)
        stored = sum(len(session.taken) for session in sessions)
        report = progress or (lambda _: None)
        now = Progress(stored, total, stored)

        def charge(prediction: Prediction) -> None:
            journal.append(prediction)
            if budget is not None:
                budget.add(prediction)
                # Prices belong to services only, which the registry sees to.
                if budget.exhausted and now.done < now.total and isinstance(engine, Remote):
                    engine.stop(budget.state)

        def emit(prediction: Prediction) -> None:
            nonlocal now
            now = now.after(prediction)
            charge(prediction)
            report(now)

        if model.prices is not None and isinstance(engine, Remote):
            # A call that may be charged stands in the journal, also if it is made again.
            engine.lost = charge
        report(now)
        if budget is not None and now.done < now.total:
            budget.check()
        engine.answer_all((s for s in sessions if s.prompt is not None), emit)
    return path


def _begun(path: Path) -> tuple[Record | None, list[Prediction]]:
    """Reads what earlier starts left; what is wrong with a journal is said where it is opened."""
    try:
        return read_answers(path)
    except JournalError:
        return None, []


def _as_begun(model: Model, before: Record | None) -> Model:
    """Goes on with the commit that a journal was begun with: a branch moves, a run must not."""
    if not model.computes_here or model.revision or before is None:
        return model
    if before.weights == model.weights:
        return model.model_copy(update={"revision": before.revision})
    return model


def _agreed(before: Record | None, now: Record) -> list[str]:
    """Lists the dialogues whose text, as it is now, was agreed to be sent to the same place."""
    if before is None or before.proxy != now.proxy:
        return []
    return (before.agreed or []) if before.corpus_fingerprint == now.corpus_fingerprint else []


def _require_consent(model: Model, corpus: Corpus, number: int, consent: Consent | None) -> None:
    host, proxy = host_of(model), proxy_of(model)
    through = f" through the proxy {proxy}" if proxy else ""
    question = (
        f"The text of {number} dialogues of {corpus.name} will be sent to {host}{through} "
        f"({model.name}). Send it?"
    )
    if consent is None or not consent(question):
        raise EngineError(
            f"{model.name} is remote, and sending {number} dialogues of {corpus.name} to {host} "
            "was not agreed to. Agree with --yes, or in Python with `consent=lambda _: True`."
        )
