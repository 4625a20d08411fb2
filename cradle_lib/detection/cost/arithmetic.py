"""What a run costs by arithmetic: operations, bytes, and hours on a machine that is not here.

Two ways to ask a decoder about every user turn are compared over the same token counts.

*One prompt at a time* (the paper's): each prompt is computed whole, then its answer token by
token, alone; all weights are read from memory once for the prompt and once for each further
token of the answer.

*Waves*: of each prompt only the new tokens are computed; the keys and values of the static
prefix are stored once; many dialogues advance together, so that one reading of the weights
serves all of them.

Operations, a multiplication and an addition being two:
    A token in the linear layers: 2 x their parameters. In attention, a token with c tokens
    before and including it: 4 x layers x heads x head size x c. The language-model head: only
    where a next token is asked for.
Time:
    The greater of operations over the rate of the processor and bytes over the rate of the
    memory, each rate times a share that is assumed to be reached. Everything else, such as
    Python between the steps, costs nothing here: real runs are slower, most of all one prompt
    at a time.

References:
    Kaplan et al. 2020 (arXiv 2001.08361), section 2.1, on operations per token; Williams et al.,
    "Roofline", 2009; Pope et al. 2022 (arXiv 2211.05102), on memory-bound decoding.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import date as Date  # noqa: N812 - a field is called date
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.corpus import Corpus
from cradle_lib.detection.journals.journal import read_journal
from cradle_lib.detection.journals.stored_answers import run_files
from cradle_lib.detection.local.wave.engine import LARGEST_WAVE
from cradle_lib.detection.models.shape import Shape
from cradle_lib.detection.session import Prediction
from cradle_lib.errors import JournalError

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Machine:
    """A processor with its memory, and what of it is assumed to be reached.

    Attributes:
        name: What it is called.
        rate: Operations per second at best, dense.
        bandwidth: Bytes per second from memory at best.
        memory: Bytes of memory.
        rate_share: Share of ``rate`` that large matrix products reach.
        bandwidth_share: Share of ``bandwidth`` that reading weights reaches.
        memory_share: Share of ``memory`` that weights, keys and values may fill.
    """

    name: str
    rate: float
    bandwidth: float
    memory: float
    rate_share: float = 0.5
    bandwidth_share: float = 0.7
    memory_share: float = 0.9

    def seconds(self, operations: float, read: float) -> float:
        """Time of work that computes and reads at once: that of the slower of the two."""
        compute = operations / (self.rate * self.rate_share)
        return max(compute, read / (self.bandwidth * self.bandwidth_share))


QWEN3_32B: Final = Shape(
    layers=64,
    hidden=5120,
    heads=64,
    key_heads=8,
    head_size=128,
    intermediate=25_600,
    vocabulary=151_936,
    source="https://huggingface.co/Qwen/Qwen3-32B/blob/main/config.json",
    date=Date(2026, 11, 23),
)
# The maker's data sheet: 1,979 TFLOPS in bfloat16 with sparsity, half of it for dense matrices.
H200: Final = Machine("one H200", rate=989e12, bandwidth=4.8e12, memory=141e9)


@dataclass(frozen=True)
class Workload:
    """The token counts of a run, turn by turn.

    Attributes:
        prompt: Tokens of each prompt. Shape (turns,).
        cached: Those of them that were not computed again. Shape (turns,).
        answer: Tokens of each answer. Shape (turns,).
        dialogues: Dialogues that the turns belong to.
    """

    prompt: Counts
    cached: Counts
    answer: Counts
    dialogues: int

    @property
    def prefix(self) -> int:
        """Tokens that all prompts share: what even a dialogue's first one found in the cache."""
        return int(self.cached.min())

    @property
    def longest(self) -> int:
        """The most tokens that one dialogue adds to the prefix, its last answer included."""
        return int((self.prompt + self.answer).max()) - self.prefix


def workload(predictions: Iterable[Prediction]) -> Workload:
    """Reads the token counts of a run with the wave engine.

    Predictions that failed before the model was asked are left out. An answer of no tokens counts
    as one, because its end had to be predicted.

    Raises:
        JournalError: If a prediction does not say how many tokens were computed, or no turn
            is left.
    """
    rows, dialogues = [], set()
    for p in predictions:
        if p.outcome == "failed":
            continue
        if p.tokens_in is None or p.tokens_cached is None or p.tokens_out is None:
            raise JournalError(
                f"dialogue {p.dialogue}, turn {p.turn}: the journal does not say how many tokens "
                "were computed. Take the journal of a run on this machine."
            )
        rows.append((p.tokens_in, p.tokens_cached, max(p.tokens_out, 1)))
        dialogues.add(p.dialogue)
    if not rows:
        raise JournalError("the journal has no answered turn. Finish the run with `cradle infer`.")
    prompt, cached, answer = np.array(rows, dtype=np.int64).T
    return Workload(prompt, cached, answer, len(dialogues))


@dataclass(frozen=True, slots=True)
class Cost:
    """What one way to run a workload takes: as :func:`large_model_costs` lists it."""

    tokens: int
    operations: float
    bytes_read: float
    bytes_held: float
    passes: float
    seconds: float


def one_by_one(work: Workload, decoder: Shape, machine: Machine) -> Cost:
    """Costs the paper's way: every prompt whole, one answer at a time.

    The prompt's pass predicts the first token of the answer, so that an answer of m tokens takes
    m - 1 further passes. Attention reads the keys and values of all tokens before.
    """
    prompt, steps = work.prompt, work.answer - 1
    prefill_pairs = int((prompt * (prompt + 1) // 2).sum())
    decode_pairs = int((steps * prompt + steps * (steps + 1) // 2).sum())
    turns, decoded = len(prompt), int(steps.sum())
    longest = (prompt + work.answer).max()
    prefill = decoder.operations(int(prompt.sum()), prefill_pairs, turns)
    prefill_read = float(turns * decoder.read_bytes)
    decode = decoder.operations(decoded, decode_pairs, decoded)
    decode_read = float(decoded * decoder.read_bytes + decode_pairs * decoder.cache_bytes(1))
    return Cost(
        tokens=int(prompt.sum()) + decoded,
        operations=prefill + decode,
        bytes_read=prefill_read + decode_read,
        bytes_held=decoder.weight_bytes + decoder.cache_bytes(1) * float(longest),
        passes=float(turns + decoded),
        seconds=machine.seconds(prefill, prefill_read) + machine.seconds(decode, decode_read),
    )


def lanes(work: Workload, decoder: Shape, machine: Machine) -> int:
    """Finds how many dialogues can advance together, each in a slot for the longest.

    The number is 1 if not even one fits, so that costs can still be told.
    """
    free = machine.memory * machine.memory_share - decoder.weight_bytes
    free -= work.prefix * decoder.cache_bytes(1)
    fit = int(free // (work.longest * decoder.cache_bytes(1)))
    return max(1, min(LARGEST_WAVE, work.dialogues, fit))


def needed(work: Workload, decoder: Shape) -> tuple[int, float]:
    """Counts what cannot be saved: every new token of a run once, the static prefix once.

    Returns:
        Tokens, and the operations that they need.
    """
    computed = work.prompt - work.cached + work.answer - 1
    # New tokens stand at the end: each attends to everything before it, cached or not.
    ends = work.prompt + work.answer - 1
    pairs = int((ends * (ends + 1) // 2 - work.cached * (work.cached + 1) // 2).sum())
    operations = decoder.operations(int(computed.sum()), pairs, int(work.answer.sum()))
    prefix_pairs = work.prefix * (work.prefix + 1) // 2
    operations += decoder.operations(work.prefix, prefix_pairs, 0)
    return int(computed.sum()) + work.prefix, operations


def waves(work: Workload, decoder: Shape, machine: Machine, wave: int) -> Cost:
    """Costs waves: only new tokens, one copy of the prefix, ``wave`` dialogues at a time.

    A turn takes part in as many forward passes as its answer has tokens; each pass serves a whole
    wave, reads all weights and the prefix once, and each dialogue's own keys and values.
    """
    tokens, operations = needed(work, decoder)
    steps = work.answer - 1
    own = int((work.answer * (work.prompt - work.prefix) + steps * (steps + 1) // 2).sum())
    passes = int(work.answer.sum()) / wave + 1
    read = passes * (decoder.read_bytes + work.prefix * decoder.cache_bytes(1))
    read += own * decoder.cache_bytes(1)
    slots = wave * work.longest + work.prefix
    return Cost(
        tokens=tokens,
        operations=operations,
        bytes_read=float(read),
        bytes_held=float(decoder.weight_bytes + slots * decoder.cache_bytes(1)),
        passes=passes,
        seconds=machine.seconds(operations, read),
    )


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
        list(rows.values()),
        index=pd.Index(rows, name="way", dtype=object),
        columns=[field.name for field in fields(Cost)],
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
