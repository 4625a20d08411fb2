"""What a model's weights and its keys and values take in memory, from its configuration.

Weights: the matrices of attention, feed-forward layers, experts and router, embedding and head,
each with its own bytes per number. Norms and biases, and the part of some models that sees images
(a hundredth of their weights), are left to the reserve.
Keys and values of a token: 2 x layers x key heads x head size numbers; in layers with a window
only the last tokens are kept.
"""

from __future__ import annotations

from datetime import date as Date  # noqa: N812 - a field is called date
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

#: Share of a GPU's memory that weights, keys and values may fill; servers call it utilization.
USABLE: Final = 0.9
#: Tokens that a server should take at once; the longest questions of long dialogues need half.
CONTEXT: Final = 16_384
#: Tokens of a question halfway through a dialogue, its instruction included.
USUAL: Final = 4_096
_BYTES: Final = 2
_Count = Annotated[int, Field(ge=1)]


class Shape(BaseModel):
    """The numbers of a decoder's ``config.json`` that decide what it takes.

    Attributes:
        layers: Number of layers.
        hidden: Width of the residual stream.
        heads: Query heads.
        key_heads: Heads of keys and values.
        head_size: Width of a head.
        intermediate: Width inside a feed-forward layer, or inside an expert.
        vocabulary: Rows of the embedding.
        tied: Whether embedding and head are one matrix.
        experts: Experts of each layer; 0 for a dense model.
        shared_experts: Experts that see every token.
        expert_bits: Bits of a number of the experts, as published.
        window: Tokens that layers without full attention look back; ``None`` if all look at all.
        full_layers: Layers with full attention, where there is a window.
        source: Where the numbers stand.
        date: Day on which they were looked up.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    layers: _Count
    hidden: _Count
    heads: _Count
    key_heads: _Count
    head_size: _Count
    intermediate: _Count
    vocabulary: _Count
    tied: bool = False
    experts: Annotated[int, Field(ge=0)] = 0
    shared_experts: Annotated[int, Field(ge=0)] = 0
    expert_bits: Annotated[float, Field(gt=0)] = 16.0
    window: _Count | None = None
    full_layers: Annotated[int, Field(ge=0)] = 0
    source: str
    date: Date

    @property
    def parameters(self) -> int:
        """Parameters of all matrices."""
        return self._dense + self._experts

    @property
    def weight_bytes(self) -> float:
        """Bytes of the weights: bfloat16, but for experts that are published in fewer bits."""
        return _BYTES * self._dense + self._experts * self.expert_bits / 8

    def cache_bytes(self, tokens: int) -> int:
        """Bytes of the keys and values of one sequence of so many tokens."""
        token = 2 * self.key_heads * self.head_size * _BYTES
        if self.window is None:
            return token * self.layers * tokens
        short = (self.layers - self.full_layers) * min(tokens, self.window)
        return token * (self.full_layers * tokens + short)

    def together(self, gpus: int, memory: float, tokens: int = USUAL) -> int:
        """Counts the sequences of so many tokens whose keys and values fit beside the weights.

        Both are divided among the GPUs, each of which has so many bytes of memory.
        """
        free = USABLE * gpus * memory - self.weight_bytes
        return max(0, int(free // self.cache_bytes(tokens)))

    def divisions(self) -> list[int]:
        """Lists the numbers of GPUs of one machine among which its heads can be divided evenly.

        Where there are more GPUs than heads of keys and values, servers copy these.
        """
        return [gpus for gpus in (1, 2, 4, 8, 16) if self.heads % gpus == 0]

    def least(self, memory: float) -> int | None:
        """Finds the least number of GPUs that hold it and one prompt of :data:`CONTEXT` tokens.

        ``None`` if no division among up to 16 with so many bytes of memory each does.
        """
        able = (gpus for gpus in self.divisions() if self.together(gpus, memory, CONTEXT))
        return next(able, None)

    @property
    def linear(self) -> int:
        """Parameters of a dense model's linear layers, without embedding, head and norms."""
        return self.layers * (self._attention + self._block)

    @property
    def head(self) -> int:
        """Parameters of the head."""
        return self.hidden * self.vocabulary

    @property
    def read_bytes(self) -> int:
        """Bytes of weights that a forward pass of a dense model reads: all but the embedding."""
        return _BYTES * (self.linear + self.head)

    def operations(self, tokens: int, pairs: int, predicted: int) -> float:
        """Counts the operations of forward passes of a dense model over so many tokens.

        ``pairs`` are those of a token and one that it attends to, itself included; ``predicted``
        the tokens after which the next one is asked for.
        """
        attention = 4 * self.layers * self.heads * self.head_size * pairs
        return 2.0 * self.linear * tokens + attention + 2.0 * self.head * predicted

    @property
    def _attention(self) -> int:
        return self.hidden * self.head_size * (2 * self.heads + 2 * self.key_heads)

    @property
    def _dense(self) -> int:
        always = self.shared_experts if self.experts else 1
        layer = self._attention + always * self._block + self.hidden * self.experts
        return self.layers * layer + (1 if self.tied else 2) * self.head

    @property
    def _experts(self) -> int:
        return self.layers * self.experts * self._block

    @property
    def _block(self) -> int:
        """Parameters of a gated feed-forward block."""
        return 3 * self.hidden * self.intermediate
