"""Usage of runs beside their estimates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from cradle_lib.corpus import Corpus
from cradle_lib.detection.api.estimate import estimate_cost
from cradle_lib.detection.api.money import total, with_usage
from cradle_lib.detection.journal import read_answers
from cradle_lib.detection.registry import resolve
from cradle_lib.detection.stored_answers import run_files
from cradle_lib.record import History

_COLUMNS: Final = (
    "system", "answers", "silent", "prompt_tokens", "cached", "written", "output_tokens",
    "seconds", "cost", "estimate",
)  # fmt: skip


def run_usage(corpus: Corpus, models: Sequence[str], history: History = "self") -> pd.DataFrame:
    """Adds up the tokens, the time and the dollars of runs, including repeated calls.

    Args:
        corpus: The corpus that they were over.
        models: Ids in the registry, or specs; those that were not run are left out.
        history: Labels in the history: the model's own (``self``), ``gold`` or ``none``.

    Returns:
        One row for each run.

        - ``system`` (str): the model's name.
        - ``answers`` (int): stored answers; ``silent`` (int): those without token counts, which
          the sums leave out.
        - ``prompt_tokens``, ``output_tokens`` (float): tokens of prompts and of answers; NaN if no
          answer has a count, as for baselines.
        - ``cached``, ``written`` (float): shares of the prompts' tokens, 0 to 1, that were read
          from a cache and written to one; NaN as above.
        - ``seconds`` (float): mean seconds per answer.
        - ``cost``, ``estimate`` (float): dollars that the run cost, and those estimated for the
          same turns of a model behind an API; NaN without prices.

        ``attrs["notes"]`` has the assumptions of the estimates.

    Raises:
        CradleError: If there is no such model, or tokens can't be counted on this machine.
    """
    rows: list[dict[str, object]] = []
    notes: list[str] = []
    for name in models:
        entry = resolve(name)
        files = run_files(name, corpus, history)
        answers = [answer for file in files for answer in read_answers(file)[1]]
        if not answers:
            continue
        used = with_usage(answers)
        usage = total(usage for _, usage in used)
        row: dict[str, object] = {
            "system": entry.name,
            "answers": len(answers),
            "silent": len(answers) - len(used),
            "seconds": np.mean([answer.seconds for answer in answers]),
        }
        if used:
            row["prompt_tokens"], row["output_tokens"] = usage.prompt, usage.output
            row["cached"] = usage.cached / max(usage.prompt, 1)
            row["written"] = usage.written / max(usage.prompt, 1)
        if used and entry.prices:
            row["cost"] = usage.cost(entry.prices)
        if used and entry.prices and entry.is_service:
            turns = ((answer.dialogue, answer.turn) for answer, _ in used)
            found = estimate_cost(entry, corpus, history=history).restricted(turns)
            row["estimate"] = found.usage.cost(entry.prices)
            notes += found.assumptions
        rows.append(row)
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    frame.attrs["notes"] = list(dict.fromkeys(notes))
    return frame
