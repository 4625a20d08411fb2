"""Settings of decoding: the recorded ones, without those that a checkpoint ships.

A checkpoint may ship a ``generation_config.json`` with sampling settings, penalties or beams, which
Transformers' ``generate`` obeys silently. Here the configuration is built from the settings of the
entry, for both engines. An entry with ``from_checkpoint: true`` takes over the checkpoint's usual
settings, which are then recorded one by one; all others are refused.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from cradle_lib.detection.session import Prompt
from cradle_lib.errors import EngineError

if TYPE_CHECKING:
    import torch

# Settings that can be taken over: they act when a token is drawn, or, like the last one, always.
_SAMPLING: Final = ("temperature", "top_k", "top_p", "min_p")
_PENALTY: Final = "repetition_penalty"
# Settings that change no answer: token ids, which are read elsewhere, memory, and the writer.
_HARMLESS: Final = frozenset({
    "eos_token_id", "bos_token_id", "pad_token_id", "decoder_start_token_id", "use_cache",
    "cache_implementation", "output_attentions", "output_hidden_states", "output_scores",
    "return_dict_in_generate", "early_stopping", "length_penalty", "transformers_version",
    "_from_model_config",
})  # fmt: skip
# Limits of the length: the entry's own limit always counts.
_LENGTH: Final = frozenset({"max_length", "max_new_tokens"})


def _neutral() -> dict[str, Any]:
    """Values with which settings do nothing; all other settings do nothing if they are not set.

    They are Transformers' own, but for ``top_k``: without one, tokens are drawn from all.
    """
    from transformers import GenerationConfig

    return GenerationConfig._get_default_generation_params() | {"top_k": 0, "guidance_scale": 1.0}


def checkpoint_settings(config: Any) -> dict[str, Any]:
    """Lists the settings in a checkpoint's ``GenerationConfig`` that would change an answer."""
    neutral = _neutral()
    return {
        name: value
        for name, value in sorted(config.to_dict().items())
        if name not in _HARMLESS
        # A token may have the id 0.
        and (value or (value == 0 and name.endswith("_token_id")))
        and value != neutral.get(name)
    }


def taken_over(config: Any, name: str, temperature: float | None) -> dict[str, Any]:
    """Gives the settings of a checkpoint that an entry with ``from_checkpoint`` decodes with.

    Args:
        config: The checkpoint's ``GenerationConfig``.
        name: The model's name.
        temperature: The temperature that the entry itself sets, which replaces the checkpoint's.

    Returns:
        Settings that change the answer, by name. ``temperature`` is among them if tokens are drawn;
        without it decoding is greedy.

    Raises:
        EngineError: If one of the settings can't be obeyed.
    """
    settings = checkpoint_settings(config)
    usable = {"do_sample", *_SAMPLING, _PENALTY, *_LENGTH}
    if refused := {key: value for key, value in settings.items() if key not in usable}:
        raise EngineError(
            f"{name}: its checkpoint decodes with {_listed(refused)}, which can't be taken over. "
            "Leave `from_checkpoint` out, and set what you need in `decoding`."
        )
    if temperature is None and settings.get("do_sample"):
        temperature = settings.get("temperature", 1.0)
    names = (_PENALTY, *(_SAMPLING if temperature else ()))
    taken = {name: settings[name] for name in names if name in settings}
    return taken | ({} if temperature is None else {"temperature": temperature})


def unused(config: Any, temperature: float | None) -> str | None:
    """Lists the settings of a checkpoint that are not used; ``None`` if it has none.

    Args:
        config: The checkpoint's ``GenerationConfig``.
        temperature: The entry's own; with one, tokens are drawn as the checkpoint may ask for.
    """
    own = {"do_sample": bool(temperature), "temperature": temperature}
    settings = checkpoint_settings(config).items()
    left = {name: value for name, value in settings if own.get(name) != value}
    return _listed(left) if left else None


def _listed(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} {str(value)[:60]}" for name, value in settings.items())


def generation_config(settings: dict[str, Any], max_new_tokens: int, ends: list[int]) -> Any:
    """Builds the configuration for ``generate`` from settings alone.

    Args:
        settings: As :func:`taken_over` gives them, and perhaps ``sequence_bias``.
        max_new_tokens: Most tokens of an answer.
        ends: Ids that end an answer.
    """
    from transformers import GenerationConfig

    sampled = bool(settings.get("temperature"))
    values: dict[str, Any] = {"top_k": 0} | settings
    if not sampled:
        values = {name: value for name, value in settings.items() if name not in _SAMPLING}
    values |= {
        "do_sample": sampled,
        "max_new_tokens": max_new_tokens,
        "eos_token_id": ends or None,
        # One answer at a time is never padded, and Transformers wants an id.
        "pad_token_id": min(ends, default=None),
    }
    kind: Any = GenerationConfig
    return kind(**values)


def sampling_seed(seed: int | None, prompt: Prompt) -> int:
    """Seeds one answer, so that it is the same in a run that is resumed or batched otherwise.

    The run's own seed may be ``None``, which is 0. The result is less than 2^60.
    """
    return int(hashlib.sha256(f"{seed or 0} {prompt.key}".encode()).hexdigest()[:15], 16)


class Sampler:
    """Draws the tokens of one answer, as ``generate`` does with the same seed on a processor."""

    def __init__(self, temperature: float, seed: int) -> None:
        import torch

        self._temperature = temperature
        self._chance = torch.Generator().manual_seed(seed)

    def draw(self, logits: torch.Tensor) -> int:
        """Draws an index, with the probability that logits / temperature give it.

        The logits are unnormalized log-probabilities, shape (choices,); the temperature is above 0.
        """
        import torch

        chances = torch.softmax(logits.cpu() / self._temperature, -1)
        return int(torch.multinomial(chances, 1, generator=self._chance))
