"""``cradle estimate``, consent, and what a run of a model behind an API used and cost."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from cradle_lib.cli import options as opt
from cradle_lib.cli.console import err, out, print_json, print_table
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import Model, estimate_cost
from cradle_lib.detection.api.money import total, with_usage
from cradle_lib.detection.journal import read_answers
from cradle_lib.errors import EngineError
from cradle_lib.formatting import dollars
from cradle_lib.record import History


def estimate(
    model: opt.Model,
    given: opt.Set = None,
    corpus: opt.Corpus = "surrogate",
    split: opt.Split = "test",
    sample: opt.Sample = None,
    as_json: opt.Json = False,
) -> None:
    """Say what a run would use and cost. Nothing is sent, and no key is needed."""
    settings = opt.run_settings(model, given)
    found = estimate_cost(
        settings.model,
        load_corpus(corpus, split),
        history=settings.history,
        limit=settings.limit,
        sample=sample,
    )
    usage = found.usage
    if as_json:
        answers = {"output": usage.output, "longest_output": found.longest_output}
        costs = {"with_caching": found.cost, "without": found.uncached_cost}
        print_json(
            {
                "model": found.model.id,
                "corpus": found.corpus,
                "calls": len(found.calls),
                "tokens": {"prompts": usage.prompt, **usage.kinds, **answers},
                "dollars": {**costs, "highest": found.highest_cost},
                "assumptions": list(found.assumptions),
            }
        )
        return
    kinds = {f"  {name}": count for name, count in usage.kinds.items()}
    counts = {
        "prompts": usage.prompt,
        **kinds,
        "answers as long as the gold ones": usage.output,
        "answers as long as their limit": found.longest_output,
    }
    rows = [
        {
            "": name,
            "tokens": count,
            "share of prompts": _share(count, usage.prompt) if name in kinds else "",
        }
        for name, count in counts.items()
    ]
    title = f"{found.model.name} on {found.corpus}: {len(found.calls):,} calls"
    print_table(rows, title, right=["share of prompts"])
    if found.cost is not None and found.uncached_cost is not None:
        out.print(
            f"Cost: {dollars(found.cost)} with caching, {dollars(found.uncached_cost)} without; "
            f"at most {dollars(found.highest_cost or 0)}, if nothing is ever found in the cache "
            "and every answer runs to its limit."
        )
    for sentence in found.assumptions:
        out.print(sentence)


def ask(question: str) -> bool:
    """Asks the user on the terminal.

    Raises:
        EngineError: If there is no terminal to ask on.
    """
    if not sys.stdin.isatty():
        raise EngineError(f"{question} There is no terminal to ask on: agree with --yes.")
    return typer.confirm(question, err=True)


def show_usage(entry: Model, journal: Path, corpus: Corpus, history: History) -> None:
    """Prints what a run used and cost by its journal, and what it was estimated at."""
    answers = read_answers(journal)[1]
    used = [usage for _, usage in with_usage(answers)]
    if not used:
        return
    usage = total(used)
    shares = ", ".join(f"{_share(n, usage.prompt)} {name}" for name, n in usage.kinds.items())
    out.print(
        f"Tokens: {usage.prompt:,} in the prompts of {len(used):,} calls ({shares}), "
        f"{usage.output:,} in the answers."
    )
    if entry.prices is None:
        return
    line = f"Cost: {dollars(usage.cost(entry.prices))} at the prices of {entry.prices.date}"
    try:
        places = [(a.dialogue, a.turn) for a in answers]
        expected = estimate_cost(entry, corpus, history=history).restricted(places)
        line += f"; estimated for these turns: {dollars(expected.cost or 0)}"
    except EngineError as trouble:
        err.print(f"No estimate to compare with: {trouble}")
    out.print(f"{line}.")
    if silent := len(answers) - len(used):
        out.print(f"Not in it: {silent:,} calls of which the service did not say what they used.")


def usage_json(entry: Model, journal: Path) -> dict[str, object]:
    """Gives what a run used and cost by its journal, ready for JSON."""
    used = [usage for _, usage in with_usage(read_answers(journal)[1])]
    whole = total(used)
    return {
        "calls": len(used),
        "tokens": {"prompts": whole.prompt, **whole.kinds, "output": whole.output},
        "dollars": whole.cost(entry.prices) if entry.prices else None,
    }


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"
