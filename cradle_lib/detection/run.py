"""A run: registry entry, sessions, journal and engine joined together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from cradle_lib import paths
from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection.answers import Outcome
from cradle_lib.detection.engines import Options, make_engine
from cradle_lib.detection.journal import Journal, read_journal
from cradle_lib.detection.places import journal_path, parse_shard
from cradle_lib.detection.registry import Model
from cradle_lib.detection.session import Prediction, Session
from cradle_lib.errors import EngineError
from cradle_lib.prompts import load_template
from cradle_lib.record import History, Record

Consent = Callable[[str], bool]
_HOSTS = {"openai": "api.openai.com", "anthropic": "api.anthropic.com"}


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come.

    Attributes:
        done: User turns answered, those of earlier starts included.
        total: User turns of the dialogues chosen.
        stored: Those of ``done`` that were answered before this start.
    """

    done: int
    total: int
    stored: int


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
        sample: Only this many dialogues, chosen by :func:`sample_dialogues`.
        seed: Seed of the sample.
        shard: ``i/n``: of the dialogues chosen, those whose position modulo n is i
            (i from 0), so that n processes can share a run.
        options: How this machine runs the model.
        progress: Called at the start and after every answer.
        consent: Asked once, with a sentence that says which text goes where, before the
            text of a corpus leaves the machine for the first time; a run that has a
            journal with answers has been agreed to.

    Returns:
        The journal's path.

    Raises:
        CradleError: If the run can't start, or can't go on. What was answered is kept.
    """
    chosen = _choose(corpus, limit, sample, seed, shard)
    template = load_template(model.prompt)
    engine = make_engine(model, corpus, options or Options())
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
        dialogues=None if len(chosen) == len(corpus) else [d.id for d in chosen],
        shard=shard,
        remote=model.remote,
        endpoint=model.base_url,
    )
    path = out if out.suffix == ".jsonl" else journal_path(model, corpus, history, shard, out)
    if model.remote and not (path.exists() and read_journal(path)[1]):
        _require_consent(model, corpus, chosen, consent)
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
        done = stored

        def emit(prediction: Prediction) -> None:
            nonlocal done
            journal.append(prediction)
            done += 1
            report(Progress(done, total, stored))

        report(Progress(done, total, stored))
        engine.answer_all((s for s in sessions if s.prompt is not None), emit)
    return path


def sample_dialogues(corpus: Corpus, n: int, seed: int = 0) -> list[int]:
    """Draws dialogues so that scenarios and reveal timings keep their shares.

    A systematic sample: the dialogues are sorted by scenario, timing and chance (by
    chance alone, if the corpus knows neither), and every k-th is taken.

    Args:
        corpus: The corpus.
        n: How many dialogues to draw; all of them if there are fewer.
        seed: Seed of the draw.

    Returns:
        Positions in the corpus, ascending.
    """
    generator = np.random.default_rng(seed)
    strata = [corpus.meta[key] for key in ("scenario", "timing") if key in corpus.meta]
    chance = generator.permutation(len(corpus))
    order = sorted(range(len(corpus)), key=lambda i: (*(s[i] for s in strata), chance[i]))
    n = min(n, len(corpus))
    places = (np.arange(n) + generator.random()) * (len(corpus) / max(n, 1))
    return sorted(order[int(place)] for place in places)


def _choose(
    corpus: Corpus, limit: int | None, sample: int | None, seed: int, shard: str | None
) -> Sequence[Dialogue]:
    positions = list(range(len(corpus)))
    if sample is not None:
        positions = sample_dialogues(corpus, sample, seed)
    if limit is not None:
        positions = positions[: max(limit, 0)]
    if shard is not None:
        index, count = parse_shard(shard)
        positions = positions[index::count]
    return [corpus.dialogues[position] for position in positions]


def _require_consent(
    model: Model, corpus: Corpus, chosen: Sequence[Dialogue], consent: Consent | None
) -> None:
    host = urlsplit(model.base_url).hostname if model.base_url else _HOSTS[model.engine]
    question = (
        f"The text of {len(chosen)} dialogues of {corpus.name} will be sent to {host} "
        f"({model.name}). Send it?"
    )
    if consent is None or not consent(question):
        raise EngineError(f"{model.name} is remote, and sending {corpus.name} was not agreed to")
