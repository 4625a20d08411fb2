"""``cradle estimate``, the question for consent, and the usage and cost of a run behind an API."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from cradle_lib.cli import options as opt
from cradle_lib.cli.console import out, print_json
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import Model, estimate_costs
from cradle_lib.detection.runs.costs import total_usage
from cradle_lib.detection.runs.journal import read_answers
from cradle_lib.detection.runs.selection import choose_dialogues
from cradle_lib.errors import EngineError
from cradle_lib.formatting import dollars


def estimate(
    model: opt.Model,
    given: opt.Set = None,
    corpus: opt.Corpus = "surrogate",
    split: opt.Split = "test",
    sample: opt.Sample = None,
    as_json: opt.Json = False,
) -> None:
    """Estimate what a run costs. Nothing is sent, and no key is needed."""
    settings = opt.run_settings(model, given)
    loaded = load_corpus(corpus, split)
    chosen = choose_dialogues(loaded, settings.limit, sample)
    [found] = estimate_costs(chosen, [settings.model], settings.history).to_dict("records")
    if settings.model.prices is None:
        found["usual_cost"] = found["highest_cost"] = None
    if as_json:
        names = ("calls", "prompt_bytes", "answer_tokens", "usual_cost", "highest_cost")
        about = {"model": settings.model.id, "corpus": loaded.name}
        print_json(about | {name: found[name] for name in names})
        return
    out.print(
        f"{settings.model.name} on {loaded.name}: {found['calls']:,} calls, at most "
        f"{found['prompt_bytes']:,} bytes in prompts and {found['answer_tokens']:,} tokens in "
        "answers."
    )
    if settings.model.prices is None:
        out.print(f"No cost: the entry {settings.model.id} in models.yml has no prices.")
    else:
        out.print(
            f"Cost: about {dollars(found['usual_cost'])} with four bytes per token, short answers "
            f"and no cache; at most {dollars(found['highest_cost'])}.\n"
            f"Prices of {found['date']}: {found['source']}"
        )


def ask(question: str) -> bool:
    """Asks the user a yes-or-no question on the terminal.

    Raises:
        EngineError: If there is no terminal.
    """
    if not sys.stdin.isatty():
        raise EngineError(f"{question} There is no terminal to ask on: agree with --yes.")
    return typer.confirm(question, err=True)


def journal_usage(entry: Model, journal: Path) -> dict[str, Any]:
    """Gives the token usage and cost of a run from its journal, ready for JSON."""
    answers = read_answers(journal)[1]
    usage, counted = total_usage(answers)
    return {
        "calls": counted,
        "silent": len(answers) - counted,
        "tokens": {"prompts": usage.prompt, **asdict(usage)},
        "dollars": usage.cost(entry.prices) if entry.prices else None,
    }


def show_usage(entry: Model, journal: Path) -> None:
    """Prints the token usage and cost of a run from its journal."""
    used = journal_usage(entry, journal)
    if not used["calls"]:
        return
    tokens = used["tokens"]
    out.print(
        f"Tokens: {tokens['prompts']:,} in the prompts of {used['calls']:,} calls "
        f"({tokens['cached']:,} read from a cache, {tokens['written']:,} written to one), "
        f"{tokens['output']:,} in the answers."
    )
    if entry.prices is not None:
        out.print(f"Cost: {dollars(used['dollars'])} at the prices of {entry.prices.date}.")
    if used["silent"]:
        out.print(f"Not included: {used['silent']:,} calls whose usage was not reported.")
