"""A table of tokens and dollars: what a run used, beside its estimate."""

from __future__ import annotations

from cradle_lib.corpus import Corpus
from cradle_lib.detection.cost.estimate import estimate_cost
from cradle_lib.detection.cost.money import Usage, dollars, told, total
from cradle_lib.detection.journal import read_answers
from cradle_lib.detection.journal_paths import journal_files
from cradle_lib.detection.runs import find_journal
from cradle_lib.detection.specs import resolve
from cradle_lib.record import History
from cradle_lib.reporting.tables import MISSING, Cell, Column, Row, Table, count, percent, text


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
    entry = resolve(model)
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


def _share(part: int, usage: Usage) -> Cell:
    return percent(part / usage.prompt if usage.prompt else None)


def _money(amount: float | None) -> Cell:
    return Cell(MISSING) if amount is None else Cell(dollars(amount), value=amount)
