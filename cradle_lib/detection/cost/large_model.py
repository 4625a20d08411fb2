"""What a large model on a machine that is not here would take for a run that was made: calculated.

The token counts are those of a journal, the rest is arithmetic over the shape of the model and
the data sheet of the machine.
"""

from __future__ import annotations

import pandas as pd

from cradle_lib.corpus import Corpus
from cradle_lib.detection.cost.arithmetic import (
    H200,
    QWEN3_32B,
    lanes,
    one_by_one,
    waves,
    workload,
)
from cradle_lib.detection.journals.journal import read_journal
from cradle_lib.detection.journals.stored_answers import run_files


def large_model_costs(corpus: Corpus, model: str) -> pd.DataFrame:
    """Calculates what Qwen3-32B in bfloat16 on one H200 would take for the questions of a run.

    Args:
        corpus: The corpus of the run.
        model: A model that was run over it with the wave engine: an id in the registry, or a spec.

    Returns:
        One row for each way to ask, by ``way`` (the index, str): one prompt at a time, and in
        waves; no row if the run was not made.

        - ``tokens`` (float): tokens computed, of prompts and answers.
        - ``operations`` (float): multiplications and additions.
        - ``bytes_read``, ``bytes_held`` (float): read from memory, and held there at the same time.
        - ``passes`` (float): forward passes.
        - ``seconds`` (float): time of arithmetic and memory alone; what a real run spends on
          anything else comes on top.

    Raises:
        CradleError: If there is no such model, or its journal does not count tokens.
    """
    rows = {}
    if files := run_files(model, corpus):
        work = workload([answer for file in files for answer in read_journal(file)[1]])
        together = lanes(work, QWEN3_32B, H200)
        rows = {
            "one prompt at a time": one_by_one(work, QWEN3_32B, H200),
            f"waves of {together}": waves(work, QWEN3_32B, H200, together),
        }
    return pd.DataFrame(
        {
            "tokens": [float(cost.tokens) for cost in rows.values()],
            "operations": [cost.operations for cost in rows.values()],
            "bytes_read": [cost.read for cost in rows.values()],
            "bytes_held": [cost.memory for cost in rows.values()],
            "passes": [cost.passes for cost in rows.values()],
            "seconds": [cost.seconds for cost in rows.values()],
        },
        index=pd.Index(rows, name="way", dtype=object),
        dtype=float,
    )


def large_model_assumptions() -> pd.DataFrame:
    """Lists every number that :func:`large_model_costs` starts from.

    Returns:
        Columns ``about`` (str: the model or the machine), ``quantity`` (str), ``value`` (float) and
        ``unit`` (str): how :func:`.show` writes it.
    """
    decoder, machine = QWEN3_32B, H200
    one = "{:.1f}"
    shape = [
        ("Layers", decoder.layers, "count"),
        ("Hidden size", decoder.hidden, "count"),
        ("Query heads", decoder.heads, "count"),
        ("Key and value heads", decoder.key_heads, "count"),
        ("Size of a head", decoder.head_size, "count"),
        ("Intermediate size", decoder.intermediate, "count"),
        ("Vocabulary", decoder.vocabulary, "count"),
        ("Bytes of a number", 2, "count"),
        ("Parameters (10^9), from these", decoder.parameters / 1e9, one),
        ("Bytes of weights (10^9), from these", decoder.weight_bytes / 1e9, one),
        ("Bytes of keys and values per token, from these", decoder.cache_bytes(1), "count"),
    ]
    place = [
        ("Operations per second (10^12), dense", machine.rate / 1e12, "count"),
        ("Share of them assumed to be reached (%)", machine.rate_share, "share"),
        ("Bytes per second from memory (10^12)", machine.bandwidth / 1e12, one),
        ("Share of them assumed to be reached (%)", machine.bandwidth_share, "share"),
        ("Bytes of memory (10^9)", machine.memory / 1e9, "count"),
        ("Share of it that may be filled (%)", machine.memory_share, "share"),
    ]
    rows = [
        (about, quantity, float(value), unit)
        for about, lines in (("Qwen3-32B", shape), (machine.name, place))
        for quantity, value, unit in lines
    ]
    return pd.DataFrame(rows, columns=["about", "quantity", "value", "unit"])
