"""Costs of runs as data frames: estimates before a run, and what a run has cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection.api.money import (
    answer_limit,
    highest_cost,
    longest_prompts,
    prompt_sizes,
    total_usage,
    usual_cost,
)
from cradle_lib.detection.journal import read_answers
from cradle_lib.detection.model import Model
from cradle_lib.detection.registry import find_model, load_registry, resolve
from cradle_lib.detection.stored_answers import run_files
from cradle_lib.prompts import load_template
from cradle_lib.record import History

if TYPE_CHECKING:
    import pandas as pd

_COSTS: Final = (
    "system", "calls", "prompt_bytes", "answer_tokens", "input_price", "output_price", "date",
    "source", "usual_cost", "highest_cost",
)  # fmt: skip
_USED: Final = (
    "system", "answers", "silent", "prompt_tokens", "cached", "written", "output_tokens",
    "seconds", "cost",
)  # fmt: skip


def estimate_costs(
    dialogues: Iterable[Dialogue], models: Sequence[str | Model] = (), history: History = "self"
) -> pd.DataFrame:
    """Calculates roughly what runs cost, and the most that they can cost.

    Nothing is sent, and no key is needed.

    Args:
        dialogues: The dialogues, such as a whole corpus.
        models: Models, or their ids in the registry; if none is given, all entries with prices.
        history: Whose labels the history shows.

    Returns:
        One row for each model.

        - ``system`` (str): its name; ``calls`` (int): user turns.
        - ``prompt_bytes`` (int): most UTF-8 bytes of all prompts. A token has at least one byte; in
          English text it has about four.
        - ``answer_tokens`` (int): tokens of all answers if each reaches its limit.
        - ``input_price``, ``output_price`` (float): dollars per million tokens.
        - ``date``, ``source`` (str): when and where the prices were looked up.
        - ``usual_cost`` (float): dollars if a token has four bytes, an answer ten tokens, and
          nothing is read from a cache.
        - ``highest_cost`` (float): dollars if each byte of a prompt is a token, nothing is read
          from a cache, and every answer reaches its limit. It and the other columns of prices are
          empty for a model without prices.

    Raises:
        RegistryError: If there is no such model or prompt template.
    """
    import pandas as pd

    registry, rows = load_registry(), []
    priced = [model for model in registry.values() if model.prices]
    chosen = [find_model(m, registry) if isinstance(m, str) else m for m in models] or priced
    dialogues = list(dialogues)
    for model in chosen:
        template = load_template(model.prompt)
        sizes = longest_prompts(dialogues, template, history)
        row: dict[str, object] = {
            "system": model.name,
            "calls": len(sizes),
            "prompt_bytes": sum(sizes.values()),
            "answer_tokens": len(sizes) * answer_limit(model),
        }
        if (prices := model.prices) is not None:
            row |= {"input_price": prices.input, "output_price": prices.output}
            row |= {"date": str(prices.date), "source": prices.source}
            usual = prompt_sizes(dialogues, template, history).values()
            row["usual_cost"] = usual_cost(prices, usual)
            row["highest_cost"] = sum(highest_cost(model, size) for size in sizes.values())
        rows.append(row)
    return pd.DataFrame(rows, columns=list(_COSTS))


def run_usage(corpus: Corpus, models: Sequence[str], history: History = "self") -> pd.DataFrame:
    """Adds up the tokens, the time and the dollars of runs, including repeated calls.

    Args:
        corpus: The corpus that they were over.
        models: Ids in the registry, or specs; models without a run are left out.
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
        - ``cost`` (float): dollars that the run cost; NaN without prices.

    Raises:
        CradleError: If there is no such model, or a run can't be read.
    """
    import pandas as pd

    rows: list[dict[str, object]] = []
    for name in models:
        entry = resolve(name)
        files = run_files(name, corpus, history)
        answers = [answer for file in files for answer in read_answers(file)[1]]
        if not answers:
            continue
        usage, counted = total_usage(answers)
        row: dict[str, object] = {
            "system": entry.name,
            "answers": len(answers),
            "silent": len(answers) - counted,
            "seconds": np.mean([answer.seconds for answer in answers]),
        }
        if counted:
            row["prompt_tokens"], row["output_tokens"] = usage.prompt, usage.output
            row["cached"] = usage.cached / max(usage.prompt, 1)
            row["written"] = usage.written / max(usage.prompt, 1)
        if counted and entry.prices:
            row["cost"] = usage.cost(entry.prices)
        rows.append(row)
    return pd.DataFrame(rows, columns=list(_USED))
