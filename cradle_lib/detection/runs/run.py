"""Runs a model over a corpus: journal, resume, consent, budget and progress.

:func:`run` takes an entry of the registry; :func:`ask` also accepts questions that are not about
the turns of a corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import Any

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.models.engine import (
    Engine,
    Options,
    Questions,
    make_engine,
    weights_revision,
)
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.protocol.parsing import Outcome
from cradle_lib.detection.protocol.session import Prediction, Session
from cradle_lib.detection.runs.consent import require_consent
from cradle_lib.detection.runs.costs import Budget, TurnKey, prompt_sizes
from cradle_lib.detection.runs.drive import drive
from cradle_lib.detection.runs.identity import make_record
from cradle_lib.detection.runs.journal import (
    Journal,
    latest_answers,
    lock_journal,
    read_answers,
)
from cradle_lib.detection.runs.matching import run_path
from cradle_lib.detection.runs.selection import choose_dialogues
from cradle_lib.detection.runs.spending import Spending
from cradle_lib.errors import JournalError
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
        start: Called when nothing refuses the run, before the first question.
    """

    record: Mapping[str, Any]
    sessions: Callable[[Stored], Sequence[Questions]]
    total: int
    texts: str
    sizes: Callable[[], Mapping[TurnKey, int]]
    start: Callable[[], object] = lambda: None


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
    options = options or Options()
    if model.retirement:
        options.notice(model.retirement)
    path = run_path(model, corpus, history, shard, Path(out), options.notice)
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
    with lock_journal(path):
        return _ask(model, corpus, task, path, options or Options(), engine)


def _ask(
    model: Model, corpus: Corpus, task: Task, path: Path, options: Options, engine: Engine | None
) -> Record:
    before: Record | None = None
    answered: list[Prediction] = []
    with suppress(JournalError):  # A damaged journal is refused when it is opened.
        before, answered = read_answers(path)
    if before is not None and model.kind == "local" and before.weights == model.weights:
        # Keep the commit of the first start, so that a resumed run uses the same weights.
        revision = model.revision or weights_revision(before.revision)
        model = model.model_copy(update={"revision": revision})
    engine = engine or make_engine(model, corpus, options)
    record = make_record(model, engine, task.record, path, before)
    if before is not None and before.identity != record.identity:
        if model.kind == "baseline" and before.is_version_of(record):
            outdated = path.rename(_unused(path.with_suffix(".outdated")))
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
    engine.date, engine.chat = record.decoding.get("date"), record.decoding.get("chat", {})
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
        task.start()
        drive(engine, journal, sessions, task.total, spending, model.prices, options)
    return record


def _unused(path: Path) -> Path:
    """Gives the path, or one with a number if it exists: an earlier file is never replaced."""
    numbered = (path.with_name(f"{path.name}-{number}") for number in count(2))
    return next(free for free in chain([path], numbered) if not free.exists())
