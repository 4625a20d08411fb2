"""Posts in, dialogues out: a plan, a writer, validators, repairs, and a corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.construction.assemble import PLANS, Construction, Outcome
from cradle_lib.construction.plan import Kind, Plan, plan_dialogues
from cradle_lib.construction.plan_files import plan_fingerprint, read_plans, write_plans
from cradle_lib.construction.posts import Post, Posts, load_posts
from cradle_lib.construction.repair import (
    Writing,
    longest_request,
    prompts_hash,
    request,
    write_template,
)
from cradle_lib.construction.validators.checks import Finding, check_draft, rejecting
from cradle_lib.construction.validators.draft import draft_of, read_draft
from cradle_lib.construction.validators.duplicates import NAME, near_duplicates
from cradle_lib.construction.writers.phrase_bank import PhraseBank
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Model, Options, Prediction, Progress, read_journal, resolve
from cradle_lib.detection import Outcome as Answered
from cradle_lib.detection.api.batches import MOST
from cradle_lib.detection.asking import Consent, ask
from cradle_lib.detection.cost.estimate import Estimate
from cradle_lib.detection.cost.money import Usage
from cradle_lib.detection.cost.tokens import count_tokens
from cradle_lib.errors import CorpusError, RegistryError
from cradle_lib.record import commit, library_version

SHIPPED: Final = paths.DATA / "construction"
PHRASE_BANK: Final = "phrase-bank"
ATTEMPTS: Final = 3
_TURN_TOKENS: Final = 40
# Fifteen turns of some forty tokens, and room for as many words again.
_LONGEST: Final = 1_500
_DEADLINE: Final = 900.0


def construct(
    posts: Posts | str | Path | None = None,
    kind: Kind = "training",
    writer: str | Model = PHRASE_BANK,
    *,
    plans: Sequence[Plan] | None = None,
    seed: int = 0,
    attempts: int = ATTEMPTS,
    against: Iterable[Corpus] = (),
    out: str | Path | None = None,
    name: str | None = None,
    options: Options | None = None,
    progress: Callable[[Progress], None] | None = None,
    consent: Consent | None = None,
    max_cost: float | None = None,
    **settings: Any,
) -> Construction:
    """Makes dialogues of posts, or goes on where an earlier start stopped.

    Args:
        posts: The posts, or their file; by default the mild ones that ship.
        kind: ``annotated`` (10 to 13 turns for people to label) or ``training`` (15 turns with
            tags).
        writer: ``phrase-bank``; or a language model: an id in ``models.yml``, or a spec such as
            ``openai:NAME``, ``anthropic:NAME`` or ``hf:ORG/NAME``.
        plans: What to write; by default :func:`plan_dialogues` of the posts.
        seed: Start of all draws.
        attempts: How often a dialogue is asked for, the first time included.
        against: Corpora that no dialogue may nearly equal, such as the test split.
        out: Folder for the corpus, what was rejected, plans, record and, for a language model,
            the journal; ``None`` to write nothing, which a language model does not allow.
        name: What the corpus is called; by default after posts, kind and writer.
        options: How many calls at once, for a service, or which device, for local weights.
        progress: Called at the start and after every attempt of a language model.
        consent: Asked before text leaves the machine, with a sentence that says where to.
        max_cost: Most dollars, all starts together.
        **settings: For a spec: ``engine``, ``base_url``, ``key`` and any decoding setting.

    Returns:
        What came of every plan.

    Raises:
        CradleError: If posts, plans or writer can't be used, or a language model can't go on.
            What it answered is kept.
    """
    posts = posts if isinstance(posts, Posts) else load_posts(*([posts] if posts else []))
    plans = plan_dialogues(posts, kind, seed=seed) if plans is None else plans
    pairs = [(plan, _post_of(plan, posts)) for plan in plans]
    if not pairs:
        raise CorpusError("there is nothing to write: no plan", hint="Give at least one post.")
    record: dict[str, Any] = {"seed": seed, "attempts": attempts, "kind": plans[0].kind}
    record |= {"posts": posts.name, "posts_fingerprint": posts.fingerprint}
    record |= {"plan_fingerprint": plan_fingerprint(plans)}
    if out is not None:
        # Before a word is written.
        write_plans(plans, Path(out) / PLANS)
    if writer == PHRASE_BANK:
        title = name or f"{posts.name}-{plans[0].kind}-{PHRASE_BANK}"
        bank = PhraseBank.load(seed=f"{seed} {plans[0].kind}")
        outcomes = [_written(plan, post, bank, attempts) for plan, post in pairs]
        record |= {"writer": PHRASE_BANK, "version": library_version(), "commit": commit()[0]}
    else:
        model = writer_model(writer, **settings)
        title = name or f"{posts.name}-{plans[0].kind}-{model.id}"
        if out is None:
            raise CorpusError(
                "a language model's answers need a place to be kept", hint="Give `out`, a folder."
            )
        outcomes, told = _asked(
            model, pairs, posts, Path(out), attempts, options, progress, consent, max_cost
        )
        record |= {"writer": model.id, **told}
    made = Construction(title, tuple(_without_duplicates(outcomes, against)), record)
    if out is not None:
        made.save(Path(out))
    return made


def load_construction(
    folder: str | Path, posts: Posts | None = None, against: Iterable[Corpus] = ()
) -> Construction:
    """Loads what a language model wrote; it is judged anew, and the model is not needed.

    Args:
        folder: A folder that :func:`construct` wrote, or the name of a set that ships.
        posts: The posts that it was made from; by default the ones that ship.
        against: Corpora that no dialogue may nearly equal.

    Returns:
        What came of every plan. A plan that was never asked about counts as failed.

    Raises:
        CradleError: If there is no journal, or the plans are damaged.
    """
    place = Path(folder) if Path(folder).is_dir() else SHIPPED / str(folder)
    posts = posts or load_posts()
    record, answers = read_journal(place / "journal.jsonl")
    outcomes = []
    for plan in read_plans(place / PLANS):
        post = _post_of(plan, posts)
        mine = [answer for answer in answers if answer.dialogue == plan.dialogue]
        last = mine[-1] if mine else None
        tried = [
            (answer.answer, check_draft(read_draft(answer.answer), plan.kind, plan, post))
            for answer in mine
            if answer.outcome in (Answered.OK, Answered.UNPARSED)
        ]
        failed = "not asked" if last is None else None
        if last is not None and last.outcome in (Answered.REFUSED, Answered.FAILED):
            failed = f"{last.outcome}: {last.reason}"
        good = failed is None and not rejecting(tried[-1][1])
        outcomes.append(Outcome(plan, read_draft(tried[-1][0]) if good else None, tried, failed))
    told = record.model_dump(exclude={"agreed", "dialogues", "source"})
    name = f"{record.corpus}-{place.name}"
    return Construction(name, tuple(_without_duplicates(outcomes, against)), told)


def writer_model(writer: str | Model, **settings: Any) -> Model:
    """Finds the language model that a writer's name or spec stands for.

    Raises:
        RegistryError: If there is none, or it writes no text.
    """
    if isinstance(writer, str) and ":" in writer:
        settings.setdefault("max_new_tokens", _LONGEST)
    if isinstance(writer, str) and writer.startswith("hf:"):
        # Its other engine is made for many short answers.
        settings["engine"] = settings.get("engine") or "reference"
    model = resolve(writer, **settings)
    if model.kind == "baseline" or (model.decoding and model.decoding.mode):
        raise RegistryError(
            f"{model.name} writes no dialogues. Name {PHRASE_BANK} or a language model, such as "
            "openai:NAME, anthropic:NAME or hf:ORG/NAME."
        )
    return model


def estimate_writing(model: Model, plans: Sequence[Plan], posts: Posts) -> Estimate:
    """Counts what the first attempts would use; sends nothing and needs no key.

    Args:
        model: The writer.
        plans: The plans.
        posts: Their posts.

    Returns:
        The estimate: a prompt's static part is read from a cache from the second call on, where
        the provider's cache is large enough for it, and a turn is taken to have forty tokens.

    Raises:
        EngineError: If tokens can't be counted on this machine.
    """
    template = write_template(plans[0].kind)
    static = count_tokens(template.text[: template.static])
    kept = static if static >= model.caching.minimum else 0
    calls: dict[tuple[str, int], Usage] = {}
    for plan in plans:
        tokens = count_tokens(request(plan, _post_of(plan, posts)))
        read = min(kept, tokens) if calls else 0
        calls[plan.dialogue, 0] = Usage(
            fresh=tokens - read, cached=read, output=_TURN_TOKENS * len(plan.rows)
        )
    return Estimate(model, posts.name, calls)


def form_grammar(kind: Kind) -> dict[str, str]:
    """Gives the parameter that forces a kind's form, for a server that takes grammars.

    Args:
        kind: ``annotated`` or ``training``.

    Returns:
        What goes into the decoding setting ``extra``: llama.cpp's grammar, which fixes number
        and order of lines, speakers, and how tags are written; not what they say.
    """
    path = Path(__file__).parent / "writers" / f"{kind}.gbnf"
    return {"grammar": path.read_text(encoding="utf-8")}


def _post_of(plan: Plan, posts: Posts) -> Post:
    post = posts.by_id.get(plan.post)
    if post is None:
        raise CorpusError(
            f"the plan {plan.dialogue} is for post {plan.post!r}, which is not in {posts.name}",
            hint="Give the posts that the plans were made for.",
        )
    return post


def _written(plan: Plan, post: Post, bank: PhraseBank, attempts: int) -> Outcome:
    """Has the phrase bank write, each time with other draws, until a dialogue is valid."""
    tried: list[tuple[str, list[Finding]]] = []
    for attempt in range(attempts):
        draft, text = bank.draft(plan, attempt)
        findings = check_draft(draft, plan.kind, plan, post)
        tried.append((text, findings))
        if not rejecting(findings):
            return Outcome(plan, draft, tried)
    return Outcome(plan, None, tried)


def _asked(
    model: Model,
    pairs: Sequence[tuple[Plan, Post]],
    posts: Posts,
    out: Path,
    attempts: int,
    options: Options | None,
    progress: Callable[[Progress], None] | None,
    consent: Consent | None,
    max_cost: float | None,
) -> tuple[list[Outcome], dict[str, Any]]:
    kind = pairs[0][0].kind
    # A dialogue takes a model many times as long as a label.
    options = replace(options or Options(), deadline=_DEADLINE)
    if options.batches is not None:
        options = replace(options, concurrency=MOST)
        model = model.model_copy(update={"prices": model.prices and model.prices.halved})
    writings: list[Writing] = []

    def sessions(stored: Mapping[str, Sequence[Prediction]]) -> list[Writing]:
        writings.extend(
            Writing(plan, post, attempts, stored[plan.dialogue]) for plan, post in pairs
        )
        return writings

    record = ask(
        model,
        Corpus(posts.name, (), posts.path),
        sessions,
        path=out / "journal.jsonl",
        record={
            "prompt": f"write-{kind}",
            "prompt_hash": prompts_hash(kind),
            "history": "none",
            "corpus": f"{posts.name}-{kind}",
            "corpus_fingerprint": plan_fingerprint([plan for plan, _ in pairs]),
        },
        asked=[plan.dialogue for plan, _ in pairs],
        total=len(pairs),
        what=f"posts of {posts.name}",
        sizes=lambda: {
            place: size
            for plan, post in pairs
            for place, size in longest_request(plan, post, attempts).items()
        },
        # A dialogue takes a model many times as long as a label.
        options=options,
        progress=progress,
        consent=consent,
        max_cost=max_cost,
    )
    outcomes = [Outcome(w.plan, w.draft, tuple(w.attempts), _why_failed(w)) for w in writings]
    return outcomes, record.model_dump(exclude={"agreed", "dialogues", "source"})


def _why_failed(writing: Writing) -> str | None:
    if writing.failed is None and writing.remaining:
        return "not asked to the end"
    return writing.failed


def _without_duplicates(outcomes: Sequence[Outcome], against: Iterable[Corpus]) -> list[Outcome]:
    """Rejects accepted dialogues that nearly equal an earlier one, here or in other corpora."""
    texts = [
        (f"{corpus.name} {dialogue.id}", draft_of(dialogue).text)
        for corpus in against
        for dialogue in corpus
    ]
    places = {outcome.plan.dialogue: i for i, outcome in enumerate(outcomes)}
    texts += [(o.plan.dialogue, o.draft.text) for o in outcomes if o.draft is not None]
    found = list(outcomes)
    for duplicate, earlier, share in near_duplicates(texts):
        if duplicate not in places:
            continue
        outcome = found[places[duplicate]]
        words = f"It says nearly the same as {earlier} ({share:.0%} of the word triples)."
        *before, (text, findings) = outcome.attempts
        last = (text, [*findings, Finding(NAME, "reject", words)])
        found[places[duplicate]] = replace(outcome, draft=None, attempts=(*before, last))
    return found
