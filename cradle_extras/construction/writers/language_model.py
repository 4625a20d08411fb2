"""Language models as writers: which may write, what it would cost, and how they are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from cradle_extras.construction.assemble import Outcome
from cradle_extras.construction.plan import Kind, Plan
from cradle_extras.construction.plan_files import plan_fingerprint
from cradle_extras.construction.posts import Post, Posts
from cradle_extras.construction.repair import (
    Writing,
    longest_request,
    prompts_hash,
    request,
    write_template,
)
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Model, Options, Prediction, Progress, resolve
from cradle_lib.detection.api.estimate import Estimate
from cradle_lib.detection.api.money import Usage
from cradle_lib.detection.api.tokens import count_tokens
from cradle_lib.detection.run import Consent, ask
from cradle_lib.errors import RegistryError
from cradle_lib.record import Record

PHRASE_BANK: Final = "phrase-bank"
_TURN_TOKENS: Final = 40
# Fifteen turns of some forty tokens, and room for as many words again.
_LONGEST: Final = 1_500
_DEADLINE: Final = 900.0


def writer_model(writer: str | Model, **settings: Any) -> Model:
    """Finds the language model that a writer's name or spec stands for.

    Args:
        writer: A name or a spec, whose limit of tokens becomes that of a dialogue if none is
            set; or a model, which is taken as it is.
        **settings: For a spec, as for :func:`.construct`.

    Returns:
        The model.

    Raises:
        RegistryError: If there is none, or it writes no text.
    """
    if isinstance(writer, str) and writer.startswith("hf:"):
        # Its other engine is made for many short answers.
        settings["engine"] = settings.get("engine") or "reference"
    model = resolve(writer, **settings)
    named = isinstance(writer, str) and settings.get("max_new_tokens") is None
    if named and model.decoding and model.decoding.max_new_tokens < _LONGEST:
        # An entry's own limit is that of a label.
        longer = model.decoding.model_copy(update={"max_new_tokens": _LONGEST})
        model = model.model_copy(update={"decoding": longer})
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
        tokens = count_tokens(request(plan, posts.for_plan(plan.dialogue, plan.post)))
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
    path = Path(__file__).with_name(f"{kind}.gbnf")
    return {"grammar": path.read_text(encoding="utf-8")}


def run_record(record: Record) -> dict[str, Any]:
    """Gives the record of a run without what it holds for each dialogue."""
    return record.model_dump(exclude={"agreed", "dialogues", "source"})


def have_written(
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
    """Has a model write plans, each with its post, or goes on where an earlier start stopped.

    ``out`` is the folder of the journal; all that follows is as for :func:`.construct`. Gives what
    came of each plan, and the record of the run.
    """
    kind = pairs[0][0].kind
    # A dialogue takes a model many times as long as a label.
    options = replace(options or Options(), deadline=_DEADLINE)
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
        options=options,
        progress=progress,
        consent=consent,
        max_cost=max_cost,
    )
    return [writing.result for writing in writings], run_record(record)
