"""The next token of an answer by chance, in proportion to what a model says of it."""

from __future__ import annotations

import hashlib

import torch

from cradle_lib.detection.session import Prompt


def sampling_seed(seed: int | None, prompt: Prompt) -> int:
    """Seeds one answer, so that it is the same in a run that is resumed or batched otherwise.

    The run's own seed may be ``None``, which is 0. What is given is less than 2^60.
    """
    return int(hashlib.sha256(f"{seed or 0} {prompt.key}".encode()).hexdigest()[:15], 16)


class Sampler:
    """Draws the tokens of one answer, as ``generate`` does with the same seed on a processor."""

    def __init__(self, temperature: float, seed: int) -> None:
        self._temperature = temperature
        self._chance = torch.Generator().manual_seed(seed)

    def draw(self, logits: torch.Tensor) -> int:
        """Draws an index, with the probability that logits / temperature give it.

        The logits are unnormalized log-probabilities, shape (choices,); the temperature is above 0.
        """
        chances = torch.softmax(logits.cpu() / self._temperature, -1)
        return int(torch.multinomial(chances, 1, generator=self._chance))
