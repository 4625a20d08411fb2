"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from cradle_lib.errors import CradleError
from cradle_lib.record import History

ModelOption = Annotated[str, typer.Option("--model", help="Id of the model in models.yml.")]
CorpusOption = Annotated[
    str, typer.Option("--corpus", help="surrogate, hub, or a file in the release's format.")
]
SplitOption = Annotated[str, typer.Option(help="train, dev or test, for a corpus by name.")]
HistoryOption = Annotated[
    str, typer.Option(help="Whose tags the history shows: self (the paper's), gold, none.")
]
LimitOption = Annotated[int | None, typer.Option(min=1, help="Only the first N dialogues.")]
SampleOption = Annotated[
    int | None, typer.Option(min=1, help="Only N dialogues, stratified by scenario and timing.")
]


def parse_history(name: str) -> History:
    """Reads whose tags the history shows.

    Raises:
        CradleError: If there is no such choice.
    """
    for history in get_args(History):
        if name == history:
            return history  # type: ignore[no-any-return]  # get_args forgets what it holds
    raise CradleError(f"no history {name!r}. Choose one of {', '.join(get_args(History))}.")
