"""``cradle show``: one question of a run as it was asked, and the raw answer to it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cradle_lib import paths
from cradle_lib.cli import options as opt
from cradle_lib.cli.console import err, out
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import Session, read_journal
from cradle_lib.errors import JournalError
from cradle_lib.labels import format_mask
from cradle_lib.prompts import load_template


def show(
    journal: Annotated[Path, typer.Argument(help="A run's journal.")],
    dialogue: Annotated[str, typer.Argument(help="Id of a dialogue, such as d0007.")],
    turn: Annotated[int, typer.Argument(help="turn_id of a user turn, counted from 0.")],
    corpus: opt.Corpus = "surrogate",
    split: opt.Split = "test",
) -> None:
    """Print the prompt of one turn, word for word, and what the model answered."""
    record, lines = read_journal(journal)
    asked = {line.turn: line for line in lines if line.dialogue == dialogue}
    place = paths.shown(journal)
    if turn not in asked:
        known = ", ".join(map(str, sorted(asked))) or "none of this dialogue"
        raise JournalError(
            f"{place}: no answer for dialogue {dialogue}, turn {turn}. Answered turns: {known}."
        )
    loaded = load_corpus(corpus, split)
    found = next((one for one in loaded if one.id == dialogue), None)
    if found is None:
        raise JournalError(f"{loaded.name} has no dialogue {dialogue}. Name the run's --corpus.")
    stored = [line for number, line in asked.items() if number < turn]
    session = Session(found, load_template(record.prompt), record.history, stored)
    prompt, answer = session.prompt, asked[turn]
    if prompt is None or prompt.key != answer.key:
        raise JournalError(
            f"{place}: dialogue {dialogue}, turn {turn} was asked with other words. The corpus "
            "or the prompt template has changed since, or the run was over another corpus."
        )
    gold = next(one.mask for one in found.user_turns if one.turn_id == turn)
    # Line by line: only what is endless is cut.
    for text in prompt.text.split("\n"):
        out.print(text)
    err.print(
        f"--- {record.name} answered ({answer.outcome}, tagged {format_mask(answer.mask)}; gold "
        f"{format_mask(gold)}):"
    )
    for text in answer.answer.split("\n"):
        out.print(text)
