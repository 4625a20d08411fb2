"""Usage of a run beside its estimate."""

from __future__ import annotations

from typing import Final

import pandas as pd

from cradle_lib.corpus import Corpus
from cradle_lib.detection.cost.estimate import estimate_cost
from cradle_lib.detection.cost.money import Usage, total, with_usage
from cradle_lib.detection.journals.journal import read_answers
from cradle_lib.detection.journals.stored_answers import run_files
from cradle_lib.detection.models.registry import resolve
from cradle_lib.record import History

_COLUMNS: Final = (
    "what", "calls", "silent", "prompt_tokens", "cached", "written", "output_tokens", "cost",
)  # fmt: skip


def run_usage(model: str, corpus: Corpus, history: History = "self") -> pd.DataFrame:
    """Adds up the tokens and the dollars of a run, including repeated calls.

    Args:
        model: Id in the registry, or a spec.
        corpus: The corpus of the run.
        history: Tags in the history: the model's own (``self``), ``gold`` or ``none``.

    Returns:
        One row for the run (``what`` is ``run``) and, for a model behind an API, one for the
        estimate of the answered turns (``estimate``); no row for a run that does not exist or has
        no token counts, such as a baseline's.

        - ``calls`` (int): calls with known tokens; ``silent`` (int): calls that are left out
          because the service did not report their usage.
        - ``prompt_tokens``, ``output_tokens`` (int): tokens of prompts and of answers.
        - ``cached``, ``written`` (float): shares of the prompts' tokens, 0 to 1, that were read
          from a cache and written to one.
        - ``cost`` (float): dollars; NaN without prices.

        ``attrs["notes"]`` has the assumptions of the estimate.

    Raises:
        CradleError: If there is no such model, or tokens can't be counted on this machine.
    """
    entry = resolve(model)
    files = run_files(model, corpus, history)
    answers = [answer for file in files for answer in read_answers(file)[1]]
    used = with_usage(answers)

    def row(what: str, calls: int, silent: int, usage: Usage) -> tuple[object, ...]:
        shares = (part / max(usage.prompt, 1) for part in (usage.cached, usage.written))
        cost = usage.cost(entry.prices) if entry.prices else float("nan")
        return what, calls, silent, usage.prompt, *shares, usage.output, cost

    rows: list[tuple[object, ...]] = []
    notes: tuple[str, ...] = ()
    if used:
        silent = len(answers) - len(used)
        rows.append(row("run", len(used), silent, total(usage for _, usage in used)))
    if used and entry.is_service:
        found = estimate_cost(entry, corpus, history=history).restricted(
            (a.dialogue, a.turn) for a, _ in used
        )
        rows.append(row("estimate", len(found.calls), 0, found.usage))
        notes = found.assumptions
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    frame.attrs["notes"] = list(notes)
    return frame
