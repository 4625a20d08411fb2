"""How far the models of a page do the task, on pages that are about something else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from cradle_lib.corpus import Corpus
from cradle_lib.detection.registry import find_model, load_registry
from cradle_lib.detection.runs import find_journal, load_run
from cradle_lib.reporting.notice import Notice
from cradle_lib.reporting.tables import Column, Row, Table, count, percent, text

_NOTHING: Final = "There is no run whose answers could be counted."


def ability_table(corpus: Corpus, models: Sequence[str]) -> Table | Notice:
    """Shows how often models give an answer that can't be read, and how often a tag is right.

    Args:
        corpus: The corpus that they were run over.
        models: Ids in the registry; those that were not run are left out.

    Returns:
        One row for each model, counted from its journal; a notice if none was run.

    Raises:
        CradleError: If there is no such model, or a journal does not fit.
    """
    registry, rows = load_registry(), []
    for entry in dict.fromkeys(models):
        model = find_model(entry, registry)
        if find_journal(model, corpus) is None:
            continue
        run = load_run(model, corpus, partial=True)
        unread = int((~run.ok).sum())
        gold = run.corpus.gold
        tags, right, wanted = (
            int(np.bitwise_count(masks).sum()) for masks in (run.masks, run.masks & gold, gold)
        )
        rows.append(
            Row(
                (
                    text(run.record.name),
                    count(len(run.masks)),
                    count(unread),
                    percent(unread / len(run.masks)),
                    count(tags),
                    count(right),
                    count(wanted),
                )
            )
        )
    if not rows:
        named = ", ".join(models)
        return Notice(f"None of {named} was run over {corpus.name}." if named else _NOTHING)
    return Table(
        "How far the models of this page do the task, counted from their journals.",
        (
            Column("Model", "text"),
            Column("Answers"),
            Column("Can't be read"),
            Column("Share of them (%)"),
            Column("Tags"),
            Column("Right tags"),
            Column("Gold labels"),
        ),
        tuple(rows),
        ("A tag is right if it is a gold label of its turn.",),
    )
