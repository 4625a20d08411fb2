"""Tables of tokens and dollars: what a run would cost, and what one did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cradle_lib.corpus import Corpus
from cradle_lib.detection.cost.estimate import estimate_cost
from cradle_lib.detection.cost.money import Usage, dollars, told, total
from cradle_lib.detection.journal import read_answers
from cradle_lib.detection.journal_paths import journal_files
from cradle_lib.detection.model import Model
from cradle_lib.detection.registry import find_model, load_registry
from cradle_lib.detection.runs import find_journal
from cradle_lib.record import History
from cradle_lib.reporting.notice import Notice
from cradle_lib.reporting.tables import MISSING, Cell, Column, Row, Table, count, percent, text

_NEAR = "The surrogate has the shape of the paper's test split, and so nearly its estimate."
_PRICELESS: Final = "None of these models has prices in models.yml: there is no cost to show."


def price_table(models: Sequence[str] = ()) -> Table | Notice:
    """Shows the prices that the registry knows, with their date and source.

    Args:
        models: Ids in the registry; if none is named, all that have prices.

    Returns:
        One row for each model, in dollars per million tokens. A dash is a kind that is charged
        as ordinary input. A notice if none has prices.
    """
    rows = []
    for model in _priced(models):
        prices = model.prices
        if prices is not None:
            amounts = (prices.input, prices.cached, prices.written, prices.output)
            shown = (Cell(MISSING) if a is None else Cell(f"{a:g}", value=a) for a in amounts)
            rows.append(
                Row((text(model.name), *shown, text(f"{prices.date}"), text(prices.source)))
            )
    if not rows:
        return Notice(_PRICELESS)
    return Table(
        "Dollars per million tokens, by what the tokens are.",
        (
            Column("Model", "text"),
            *map(Column, ("Prompt", "Read from a cache", "Written to a cache", "Answer")),
            Column("Looked up", "text"),
            Column("Source", "text"),
        ),
        tuple(rows),
        (f"{MISSING} charged as any other token of the prompt.",),
    )


def cost_table(
    corpus: Corpus, models: Sequence[str] = (), history: History = "self"
) -> Table | Notice:
    """Shows what runs over a whole corpus would cost, by :func:`.estimate_cost`.

    Args:
        corpus: The corpus.
        models: Ids in the registry; if none is named, all that have prices.
        history: Whose tags the history shows.

    Returns:
        One row for each model; a notice if none has prices.
    """
    rows: list[Row] = []
    said: dict[str, list[str]] = {}
    for model in _priced(models):
        found = estimate_cost(model, corpus, history=history)
        usage = found.usage
        cells = (found.cost, found.uncached_cost, found.highest_cost)
        rows.append(
            Row(
                (
                    text(model.name),
                    count(len(found.calls)),
                    count(usage.prompt),
                    _share(usage.cached, usage),
                    _share(usage.written, usage),
                    count(usage.output),
                    *(_money(cell) for cell in cells),
                )
            )
        )
        for sentence in found.assumptions:
            said.setdefault(sentence, []).append(model.name)
    if not rows:
        return Notice(_PRICELESS)
    return Table(
        f"What a run over {corpus.name} would use and cost: calculated, not paid. Shares in "
        "percent of the prompts' tokens, costs in dollars.",
        (
            Column("Model", "text"),
            *map(
                Column,
                (
                    "Calls",
                    "Tokens of prompts",
                    "Read from a cache",
                    "Written to a cache",
                    "Tokens of answers",
                    "Cost with caching",
                    "Without",
                    "At most",
                ),
            ),
        ),
        tuple(rows),
        (
            "At most: nothing is ever found in the cache, and every answer runs to its limit.",
            *[_NEAR] * corpus.synthetic,
            *(f"{', '.join(names)}: {sentence}" for sentence, names in said.items()),
        ),
    )


def usage_table(model: str, corpus: Corpus, history: History = "self") -> Table | None:
    """Shows what a run used and, for a model behind an API, what it was estimated at.

    Args:
        model: Id in the registry.
        corpus: The corpus that it was run over.
        history: Whose tags it saw.

    Returns:
        The table; ``None`` for a run that counts no tokens, such as a baseline's, or that
        was not made.
    """
    entry = find_model(model, load_registry())
    path = find_journal(entry, corpus, history)
    files = journal_files(path, partial=True) if path else []
    answers = [answer for file in files for answer in read_answers(file)[1]]
    used = told(answers)
    if not used:
        return None
    columns = {"This run": (len(used), total(usage for _, usage in used))}
    notes = []
    if entry.is_service:
        found = estimate_cost(entry, corpus, history=history).over(
            (a.dialogue, a.turn) for a, _ in used
        )
        columns["Estimate for these turns"] = (len(found.calls), found.usage)
        notes += list(found.assumptions)
    if silent := len(answers) - len(used):
        notes.append(f"Left out: {silent:,} calls of which the service did not say what they used.")
    rows = [
        Row((text("Calls"), *(count(calls) for calls, _ in columns.values()))),
        Row((text("Tokens of prompts"), *(count(usage.prompt) for _, usage in columns.values()))),
    ]
    for kind in Usage().kinds:
        cells = (_share(usage.kinds[kind], usage) for _, usage in columns.values())
        rows.append(Row((text(f"{kind.capitalize()}, percent"), *cells)))
    outputs = (count(usage.output) for _, usage in columns.values())
    rows.append(Row((text("Tokens of answers"), *outputs)))
    if (prices := entry.prices) is not None:
        costs = (_money(usage.cost(prices)) for _, usage in columns.values())
        rows.append(Row((text("Cost"), *costs)))
    return Table(
        f"What the run of {entry.name} used.",
        (Column("Tokens and cost", "text"), *map(Column, columns)),
        tuple(rows),
        tuple(notes),
    )


def _priced(models: Sequence[str]) -> list[Model]:
    registry = load_registry()
    chosen = [find_model(name, registry) for name in models] or registry.sound
    return [model for model in chosen if model.prices]


def _share(part: int, usage: Usage) -> Cell:
    return percent(part / usage.prompt if usage.prompt else None)


def _money(amount: float | None) -> Cell:
    return Cell(MISSING) if amount is None else Cell(dollars(amount), value=amount)
