"""Tables about models behind an API: how failures end, and how far two ways to a model agree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

from cradle_lib.corpus import Corpus
from cradle_lib.detection.api.faults import Fault, fault_of_status
from cradle_lib.detection.cost.money import told, total
from cradle_lib.detection.journal import read_journal
from cradle_lib.detection.journal_paths import journal_files
from cradle_lib.detection.model import Model
from cradle_lib.detection.registry import find_model, load_registry
from cradle_lib.detection.runs import find_journal
from cradle_lib.detection.session import Prediction
from cradle_lib.reporting.notice import Notice
from cradle_lib.reporting.tables import (
    MISSING,
    Cell,
    Column,
    Row,
    Table,
    count,
    decimal,
    percent,
    text,
)

# What a service may say, as a status and the code in the body.
_SAID: Final = (
    ("Wrong key", 401, None),
    ("No credit left", 429, "insufficient_quota"),
    ("Key not allowed", 403, None),
    ("No such model", 404, None),
    ("Too many requests", 429, None),
    ("Overloaded", 503, None),
    ("Overloaded, as Anthropic says it", 529, None),
    ("Trouble of the server", 500, None),
    ("Timeout of the server", 408, None),
    ("Content filter", 400, "content_filter"),
    ("Request not understood", 400, None),
    ("Too large", 413, None),
)
_FOLLOWS: Final = {
    "stop": "the run stops at once",
    "retry": "asked again after a wait; failed after the last attempt",
    "refused": "refused",
    "failed": "failed",
}
_Run = tuple[Model, dict[tuple[str, int], Prediction]]


def fault_table() -> Table:
    """Shows what follows from what a service says, as the engines' own rule decides it."""
    rows = []
    for title, status, code in _SAID:
        fault = fault_of_status(status, {}, {"error": {"code": code, "message": ""}})
        cells = (text(title), text(f"{status}"), text(_FOLLOWS[fault.kind]), text(_slower(fault)))
        rows.append(Row(cells))
    return Table(
        "What a service says, and what follows.",
        (
            Column("What happened", "text"),
            Column("HTTP status", "text"),
            Column("The question", "text"),
            Column("Calls at once", "text"),
        ),
        tuple(rows),
    )


def token_table(corpus: Corpus, models: Sequence[str]) -> Table | Notice:
    """Shows what runs used, side by side.

    Args:
        corpus: The corpus that they were over.
        models: Ids in the registry; those that were not run are left out.

    Returns:
        One row for each run; a notice if there is none.
    """
    rows = []
    for model, answers in _runs(corpus, models):
        usage = total(used for _, used in told(answers.values()))
        rows.append(
            Row(
                (
                    text(model.name),
                    count(len({dialogue for dialogue, _ in answers})),
                    count(len(answers)),
                    count(usage.prompt),
                    percent(usage.cached / usage.prompt if usage.prompt else None),
                    count(usage.output),
                    decimal(sum(a.seconds for a in answers.values()) / max(len(answers), 1)),
                )
            )
        )
    if not rows:
        return _none(corpus)
    titles = ("Dialogues", "User turns", "Tokens of prompts", "Read from a cache, percent")
    return Table(
        f"What these runs over {corpus.name} used, side by side.",
        (
            Column("Run", "text"),
            *map(Column, (*titles, "Tokens of answers", "Seconds an answer")),
        ),
        tuple(rows),
    )


def agreement_of_answers(corpus: Corpus, models: Sequence[str]) -> Table | Notice:
    """Compares runs answer by answer, wherever they were asked the same question.

    Args:
        corpus: The corpus that they were over.
        models: Ids in the registry; those that were not run are left out.

    Returns:
        One row for each pair: the turns that both answered; how many of these were word for word
        the same question; and among those the shares with the same count of prompt tokens, the
        same text and the same labels. The history holds a model's own tags, so that two
        runs are asked different questions after their tags first differed. A notice if there are
        no two runs.
    """
    rows = []
    for (one, first), (two, second) in combinations(_runs(corpus, models), 2):
        both = first.keys() & second.keys()
        same = [(first[k], second[k]) for k in sorted(both) if first[k].key == second[k].key]
        counted = [(a, b) for a, b in same if None not in (a.tokens_in, b.tokens_in)]
        rows.append(
            Row(
                (
                    text(f"{one.name} and {two.name}"),
                    count(len(both)),
                    count(len(same)),
                    _share([a.tokens_in == b.tokens_in for a, b in counted]),
                    _share([a.answer == b.answer for a, b in same]),
                    _share([(a.outcome, a.mask) == (b.outcome, b.mask) for a, b in same]),
                )
            )
        )
    if not rows:
        return _none(corpus)
    titles = ("Same number of prompt tokens", "Same text", "Same labels")
    return Table(
        "Pairs of runs: shares in percent of the questions that were the same.",
        (
            Column("Runs", "text"),
            *map(Column, ("Turns of both", "Same question", *titles)),
        ),
        tuple(rows),
    )


def _runs(corpus: Corpus, models: Sequence[str]) -> list[_Run]:
    registry = load_registry()
    runs = []
    for name in models:
        model = find_model(name, registry)
        if (path := find_journal(model, corpus)) is not None:
            files = journal_files(path, partial=True)
            found = [prediction for file in files for prediction in read_journal(file)[1]]
            runs.append((model, {(p.dialogue, p.turn): p for p in found}))
    return runs


def _slower(fault: Fault) -> str:
    if fault.kind == "stop":
        return MISSING
    return "fewer" if fault.busy else "as before"


def _share(equal: Sequence[bool]) -> Cell:
    return percent(sum(equal) / len(equal) if equal else None)


def _none(corpus: Corpus) -> Notice:
    return Notice(f"These runs were not made over {corpus.name}.")
