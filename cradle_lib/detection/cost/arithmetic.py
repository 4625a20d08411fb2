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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from cradle_lib.detection.local.wave.engine import LARGEST_WAVE
from cradle_lib.errors import JournalError

if TYPE_CHECKING:
    from cradle_lib.detection.session import Prediction

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Decoder:
    """The shape of a dense decoder with gated feed-forward layers and grouped queries.

    Attributes:
        name: What it is called.
        layers: Number of layers.
        hidden: Width of the residual stream.
        heads: Query heads.
        key_heads: Heads of keys and values.
        head_size: Width of a head.
        intermediate: Width inside the feed-forward layers.
        vocabulary: Rows of the embedding and of the head, which are separate matrices.
        bytes_each: Bytes of a number; 2 for bfloat16.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    key_heads: int
    head_size: int
    intermediate: int
    vocabulary: int
    bytes_each: int = 2

    @property
    def linear(self) -> int:
        """Parameters of the linear layers, without embedding, head and norms."""
        attention = self.hidden * self.head_size * (2 * self.heads + 2 * self.key_heads)
        return self.layers * (attention + 3 * self.hidden * self.intermediate)

    @property
    def head(self) -> int:
        """Parameters of the head."""
        return self.hidden * self.vocabulary

    @property
    def weight_bytes(self) -> int:
        """Bytes of linear layers, head and embedding."""
        return self.bytes_each * (self.linear + 2 * self.head)

    @property
    def read_bytes(self) -> int:
        """Bytes of weights that a forward pass reads: all but the embedding."""
        return self.bytes_each * (self.linear + self.head)

    @property
    def token_bytes(self) -> int:
        """Bytes of one token's keys and values."""
        return 2 * self.layers * self.key_heads * self.head_size * self.bytes_each

    def operations(self, tokens: int, pairs: int, predicted: int) -> float:
        """Counts the operations of forward passes.

        Args:
            tokens: Tokens computed.
            pairs: Pairs of a token and one that it attends to, itself included.
            predicted: Tokens after which the next one is asked for.
        """
        attention = 4 * self.layers * self.heads * self.head_size * pairs
        return 2.0 * self.linear * tokens + attention + 2.0 * self.head * predicted


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


# config.json of Qwen/Qwen3-32B; embedding and head are not tied.
QWEN3_32B: Final = Decoder("Qwen3-32B", 64, 5120, 64, 8, 128, 25_600, 151_936)
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

    Args:
        predictions: The predictions; those that failed before the model was asked are left out.

    Returns:
        The workload. An answer of no tokens counts as one, because its end had to be predicted.

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
    """What one way to run a workload takes.

    Attributes:
        tokens: Tokens computed, of prompts and answers.
        operations: Operations.
        read: Bytes read from memory.
        memory: Bytes held at the same time: weights, keys and values.
        passes: Forward passes.
        seconds: Time on the machine.
    """

    tokens: int
    operations: float
    read: float
    memory: float
    passes: float
    seconds: float


def one_by_one(work: Workload, decoder: Decoder, machine: Machine) -> Cost:
    """Costs the paper's way: every prompt whole, one answer at a time.

    The prompt's pass predicts the first token of the answer, so that an answer of m tokens takes
    m - 1 further passes. Attention reads the keys and values of all tokens before.
    """
    prompt, steps = work.prompt, work.answer - 1
    prefill_pairs = int((prompt * (prompt + 1) // 2).sum())
    decode_pairs = int((steps * prompt + steps * (steps + 1) // 2).sum())
    turns, decoded = len(prompt), int(steps.sum())
    prefill = decoder.operations(int(prompt.sum()), prefill_pairs, turns)
    prefill_read = float(turns * decoder.read_bytes)
    decode = decoder.operations(decoded, decode_pairs, decoded)
    decode_read = float(decoded * decoder.read_bytes + decode_pairs * decoder.token_bytes)
    return Cost(
        tokens=int(prompt.sum()) + decoded,
        operations=prefill + decode,
        read=prefill_read + decode_read,
        memory=decoder.weight_bytes + decoder.token_bytes * float((prompt + work.answer).max()),
        passes=float(turns + decoded),
        seconds=machine.seconds(prefill, prefill_read) + machine.seconds(decode, decode_read),
    )


def lanes(work: Workload, decoder: Decoder, machine: Machine, most: int = LARGEST_WAVE) -> int:
    """Finds how many dialogues can advance together.

    Args:
        work: The workload; every slot is as large as its longest dialogue needs.
        decoder: The model.
        machine: The machine.
        most: No more than this many.

    Returns:
        The number; 1 if not even one fits, so that costs can still be told.
    """
    free = machine.memory * machine.memory_share - decoder.weight_bytes
    free -= work.prefix * decoder.token_bytes
    return max(1, min(most, work.dialogues, int(free // (work.longest * decoder.token_bytes))))


def needed(work: Workload, decoder: Decoder) -> tuple[int, float]:
    """Counts what cannot be saved: every new token of a run once, the static prefix once.

    Args:
        work: The workload.
        decoder: The model.

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


def waves(work: Workload, decoder: Decoder, machine: Machine, wave: int) -> Cost:
    """Costs waves: only new tokens, one copy of the prefix, ``wave`` dialogues at a time.

    A turn takes part in as many forward passes as its answer has tokens; each pass serves a whole
    wave, reads all weights and the prefix once, and each dialogue's own keys and values.
    """
    tokens, operations = needed(work, decoder)
    steps = work.answer - 1
    own = int((work.answer * (work.prompt - work.prefix) + steps * (steps + 1) // 2).sum())
    passes = int(work.answer.sum()) / wave + 1
    read = passes * (decoder.read_bytes + work.prefix * decoder.token_bytes)
    read += own * decoder.token_bytes
    slots = wave * work.longest + work.prefix
    return Cost(
        tokens=tokens,
        operations=operations,
        read=float(read),
        memory=float(decoder.weight_bytes + slots * decoder.token_bytes),
        passes=passes,
        seconds=machine.seconds(operations, read),
    )
