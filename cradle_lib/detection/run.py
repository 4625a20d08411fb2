"""A run: a model over the turns of a corpus."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.asking import Consent, Progress, ask
from cradle_lib.detection.baselines.function import Function
from cradle_lib.detection.cost.estimate import longest_prompts
from cradle_lib.detection.engine import Options
from cradle_lib.detection.journals.places import journal_path
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.selection import choose_dialogues
from cradle_lib.detection.session import Session
from cradle_lib.prompts import load_template
from cradle_lib.record import History


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
