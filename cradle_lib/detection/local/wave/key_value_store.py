"""Keys and values of a wave: one copy of the shared prefix, and a slot for each dialogue."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import pad
from transformers import PreTrainedModel

from cradle_lib.detection.local.wave.batch_layout import BatchLayout


class UnsupportedAttentionError(RuntimeError):
    """The architecture asks for something that shared attention does not do."""


class KeyValueStore:
    """Keys and values of all layers.

    Args:
        slots: How many dialogues advance together. Until the prefix is frozen there is one
            slot, in which it is computed.
        step: Tokens that a slot holds at first, and by which it grows. Steps are small: what
            lies unused in every slot of every layer costs more than copying now and then.

    Attributes:
        prefix: Keys and values of the prefix, by layer. Shape (1, key heads, length, size).
        own: Keys and values of all slots, by layer. Shape (slots, key heads, capacity, size).
        prefix_length: Tokens of the prefix.
        layout: The new tokens of the current forward pass.
    """

    def __init__(self, slots: int, step: int = 128) -> None:
        self._wave, self._step = slots, step
        self.slots, self.capacity = 1, step
        self.prefix: dict[int, tuple[Tensor, Tensor]] = {}
        self.own: dict[int, tuple[Tensor, Tensor]] = {}
        self.prefix_length = 0
        self.layout: BatchLayout

    def freeze_prefix(self, length: int, model: PreTrainedModel) -> None:
        """Turns what slot 0 holds into the prefix, perhaps empty, and opens the slots of the wave.

        Raises:
            UnsupportedAttentionError: If some of its layers kept no keys here, because their
                attention goes its own way.
        """
        layers = model.config.get_text_config().num_hidden_layers
        if length and len(self.own) != layers:
            raise UnsupportedAttentionError(f"attention in {layers - len(self.own)} layers")
        for layer, (key, value) in self.own.items():
            self.prefix[layer] = (key[:1, :, :length].clone(), value[:1, :, :length].clone())
        self.own.clear()
        self.prefix_length = length
        self.slots, self.capacity = self._wave, self._step

    def reserve(self, length: int) -> None:
        """Makes every slot hold at least so many tokens."""
        if length <= self.capacity:
            return
        more = -(-length // self._step) * self._step - self.capacity
        self.capacity += more
        for layer, (key, value) in self.own.items():
            # With zeros: what is masked must still be a number.
            self.own[layer] = (pad(key, (0, 0, 0, more)), pad(value, (0, 0, 0, more)))

    def move(self, source: int, target: int, length: int) -> None:
        """Copies the first tokens of one slot to another."""
        for key, value in self.own.values():
            key[target, :, :length] = key[source, :, :length]
            value[target, :, :length] = value[source, :, :length]

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Puts the new tokens' keys and values into their slots, and gives those of all slots.

        Shapes are (1, key heads, tokens, size) and (slots, key heads, capacity, size); values may
        have a size of their own.
        """
        layout = self.layout
        if layer not in self.own:
            shape = (self.slots, key.shape[1], self.capacity)
            self.own[layer] = (
                key.new_zeros(*shape, key.shape[3]),
                value.new_zeros(*shape, value.shape[3]),
            )
        keys, values = self.own[layer]
        keys[layout.slot, :, layout.place] = key[0].transpose(0, 1)
        values[layout.slot, :, layout.place] = value[0].transpose(0, 1)
        return keys, values
