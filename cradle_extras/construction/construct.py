"""Makes a corpus of dialogues from posts: plans, a writer, validators and repairs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from cradle_extras.construction.assemble import RECORD, Construction, Outcome
from cradle_extras.construction.plan import Kind, Plan, plan_dialogues
from cradle_extras.construction.plan_files import (
    file_fingerprint,
    plan_fingerprint,
    plan_text,
    read_plans,
)
from cradle_extras.construction.posts import Posts, load_posts
from cradle_extras.construction.repair import Writing, longest_requests, prompts_hash
from cradle_extras.construction.validators.checks import Finding
from cradle_extras.construction.validators.draft import texts_of
from cradle_extras.construction.validators.duplicates import NAME, near_duplicates
from cradle_extras.construction.writer import writer_model
from cradle_lib import paths
from cradle_lib.arguments import Positive, checked
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Model, Options, read_journal
from cradle_lib.detection.runs.run import Stored, Task, ask
from cradle_lib.errors import CorpusError
from cradle_lib.files import write_text
from cradle_lib.record import Record

SHIPPED: Final = paths.DATA / "construction"
ATTEMPTS: Final = 3
_PLANS: Final = "plans.csv"
_JOURNAL: Final = "journal.jsonl"
# Timeout of a request in seconds: a dialogue takes much longer than a label.
_DEADLINE: Final = 900.0


@checked
def construct(
    writer: str | Model,
    out: str | Path,
    *,
    posts: Posts | str | Path | None = None,
    kind: Kind = "training",
    plans: Sequence[Plan] | None = None,
    seed: int = 0,
    attempts: Positive = ATTEMPTS,
    against: Iterable[Corpus] = (),
    name: str | None = None,
    options: Options | None = None,
    **settings: Any,
) -> Construction:
    """Makes dialogues from posts, or resumes an earlier start.

    Args:
        writer: A language model: an id in ``models.yml``, or a spec such as ``openai:NAME``,
            ``anthropic:NAME`` or ``hf:ORG/NAME``.
        out: Folder for corpus, plans, record, and the journal with all attempts.
        posts: The posts, or their file; by default the mild shipped posts.
        kind: ``annotated`` (10 to 13 turns for people to label) or ``training`` (15 turns with
            tags).
        plans: The plans; by default :func:`plan_dialogues` of the posts.
        seed: Seed of all random choices.
        attempts: Maximum number of attempts at a dialogue, including the first.
        against: Corpora to search for near-duplicates, which are rejected; such as the test split.
        name: Name of the corpus; by default after posts, kind and writer.
        options: Settings of this machine, and the maximum cost.
        **settings: For a spec: ``engine``, ``base_url``, ``key`` and any decoding setting.

    Returns:
        The outcome of every plan.

    Raises:
        CradleError: If posts, plans or writer can't be used, or a language model stops with an
            error. Its answers so far are kept.
    """
    posts = posts if isinstance(posts, Posts) else load_posts(*([posts] if posts else []))
    plans = plan_dialogues(posts, kind, seed=seed) if plans is None else plans
    pairs = [(plan, posts.for_plan(plan.dialogue, plan.post)) for plan in plans]
    if not pairs:
        raise CorpusError("there is no plan to write", hint="Give at least one post.")
    kind = plans[0].kind
    record: dict[str, Any] = {
        "seed": seed,
        "attempts": attempts,
        "kind": kind,
        "posts": posts.name,
        "posts_fingerprint": posts.fingerprint,
        "posts_file": None if posts.path is None else str(posts.path),
        "plan_fingerprint": plan_fingerprint(plans),
    }
    model = writer_model(writer, **settings)
    writings: list[Writing] = []

    def sessions(stored: Stored) -> list[Writing]:
        for plan, post in pairs:
            writings.append(Writing(plan, post, attempts, stored.get(plan.dialogue, ())))
        return writings

    task = Task(
        record={
            "prompt": f"write-{kind}",
            "prompt_hash": prompts_hash(kind),
            "history": "none",
            "corpus": f"{posts.name}-{kind}",
            "corpus_fingerprint": record["plan_fingerprint"],
        },
        sessions=sessions,
        total=len(pairs),
        texts=f"posts of {posts.name}",
        sizes=lambda: longest_requests(pairs, attempts),
        start=lambda: write_text(Path(out) / _PLANS, plan_text(plans)),
    )
    options = options or Options()
    options = replace(options, deadline=options.deadline or _DEADLINE)
    about = ask(model, Corpus(posts.name, ()), task, Path(out) / _JOURNAL, options)
    record |= {"writer": model.id, **_run_record(about)}
    title = name or f"{posts.name}-{kind}-{record['writer']}"
    outcomes = [writing.result for writing in writings]
    duplicates = _find_duplicates(outcomes, against)
    record["near_duplicates"] = duplicates
    made = Construction(title, posts, _without(duplicates, outcomes), record)
    made.save(Path(out))
    return made


@checked
def load_construction(folder: str | Path, posts: Posts | None = None) -> Construction:
    """Loads the stored answers of a language model and runs the validators again.

    Args:
        folder: A folder that :func:`construct` wrote, or the name of a shipped one.
        posts: The posts that it was made from; by default the file in its record, or else the
            shipped posts.

    Returns:
        The outcome of every plan. A plan without an answer counts as failed. Near-duplicates of
        other corpora that :func:`construct` found remain rejected.

    Raises:
        CradleError: If there is no journal, the plans are damaged or are those of another start, or
            the posts are others.
    """
    place = Path(folder) if Path(folder).is_dir() else SHIPPED / str(folder)
    file = place / RECORD
    saved = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    posts = posts or load_posts(*filter(None, [saved.get("posts_file")]))
    record, answers = read_journal(place / _JOURNAL)
    plans = read_plans(place / _PLANS)
    plans_now = file_fingerprint(place / _PLANS)
    for name, now, before in (
        (_PLANS, plans_now, record.corpus_fingerprint),
        (posts.name, posts.fingerprint, saved.get("posts_fingerprint", posts.fingerprint)),
    ):
        if now != before:
            problem = f"{name} has the fingerprint {now}, and the dialogues were made with {before}"
            hint = "Restore the file, or give the posts that the dialogues were made from."
            raise CorpusError(problem, path=paths.shown(place), hint=hint)
    outcomes = []
    for plan in plans:
        own = [answer for answer in answers if answer.dialogue == plan.dialogue]
        writing = Writing(plan, posts.for_plan(plan.dialogue, plan.post), len(own))
        for answer in own:
            writing.judge(answer)
        outcomes.append(writing.result)
    duplicates = _find_duplicates(outcomes, ()) | saved.get("near_duplicates", {})
    name = f"{record.corpus}-{place.name}"
    return Construction(name, posts, _without(duplicates, outcomes), _run_record(record))


def _run_record(record: Record) -> dict[str, Any]:
    """Gives the record of a run without the fields that have an entry for each dialogue."""
    return record.model_dump(exclude={"dialogues", "source"})


def _find_duplicates(outcomes: Sequence[Outcome], against: Iterable[Corpus]) -> dict[str, str]:
    """Finds accepted dialogues that are near-duplicates of an earlier one or of other corpora.

    Returns:
        The words of the finding, by dialogue.
    """
    texts = [(o.plan.dialogue, o.draft.text) for o in outcomes if o.draft is not None]
    own = {name for name, _ in texts}
    return {
        name: f"It says nearly the same as {earlier} ({share:.0%} of the word triples)."
        for name, earlier, share in near_duplicates([*texts_of(against), *texts])
        if name in own
    }


def _without(duplicates: Mapping[str, str], outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Rejects near-duplicates, given with the words of their finding."""
    judged = []
    for outcome in outcomes:
        if outcome.draft is not None and outcome.plan.dialogue in duplicates:
            finding = Finding(NAME, "reject", duplicates[outcome.plan.dialogue])
            *before, (text, findings) = outcome.attempts
            attempts = (*before, (text, [*findings, finding]))
            outcome = replace(outcome, draft=None, attempts=attempts)
        judged.append(outcome)
    return tuple(judged)
