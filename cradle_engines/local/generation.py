"""Decoding settings: those of the entry, and those of the checkpoint only on request.

A checkpoint may ship a ``generation_config.json`` with sampling settings, penalties or beams, which
Transformers' ``generate`` applies silently. Here the configuration is built from the settings of
the entry, for both engines. An entry with ``from_checkpoint: true`` also uses those settings of the
checkpoint that are supported, and records each of them; others are refused.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from cradle_lib.detection.protocol.session import Prompt
from cradle_lib.errors import EngineError

if TYPE_CHECKING:
    import torch

# Supported settings of a checkpoint; without a temperature only the last one has an effect.
_USABLE: Final = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
# Settings that change no answer, token ids (see `Chat.ends`), and length limits, where the entry's
# own always applies.
_IGNORED: Final = frozenset({
    "eos_token_id", "bos_token_id", "pad_token_id", "decoder_start_token_id", "use_cache",
    "cache_implementation", "output_attentions", "output_hidden_states", "output_scores",
    "return_dict_in_generate", "early_stopping", "length_penalty", "transformers_version",
    "max_length", "max_new_tokens", "_from_model_config",
})  # fmt: skip


def checkpoint_settings(config: Any) -> dict[str, Any]:
    """Lists the settings in a checkpoint's ``GenerationConfig`` that would change an answer."""
    from transformers import GenerationConfig

    # The values that have no effect. Settings that are missing here have no effect if unset.
    # top_k 0 draws tokens from the whole vocabulary.
    neutral = GenerationConfig._get_default_generation_params() | {"top_k": 0}
    return {
        name: value
        for name, value in sorted(config.to_diff_dict().items())
        if name not in _IGNORED and value and value != neutral.get(name)
    }


def inherited_settings(config: Any, name: str, temperature: float | None) -> dict[str, Any]:
    """Gives the settings of a checkpoint that an entry with ``from_checkpoint`` decodes with.

    Args:
        config: The checkpoint's ``GenerationConfig``.
        name: The model's name.
        temperature: The temperature that the entry itself sets, which replaces the checkpoint's.

    Returns:
        Settings that change the answer, by name. They include ``temperature`` if tokens are drawn;
        without it decoding is greedy.

    Raises:
        EngineError: If one of the settings is not supported.
    """
    settings = checkpoint_settings(config)
    drawn = settings.pop("do_sample", False)
    if refused := {key: value for key, value in settings.items() if key not in _USABLE}:
        raise EngineError(
            f"{name}: its checkpoint decodes with {listed(refused)}, which is not supported. "
            "Leave `from_checkpoint` out, and set what you need in `decoding`."
        )
    if temperature is None and drawn:
        temperature = settings.get("temperature", 1.0)
    names = _USABLE if temperature else _USABLE[-1:]
    taken = {name: settings[name] for name in names if name in settings}
    return taken | ({} if temperature is None else {"temperature": temperature})


def listed(settings: dict[str, Any]) -> str:
    """Formats settings for a message."""
    return ", ".join(f"{name} {str(value)[:60]}" for name, value in settings.items())


def sampling_seed(seed: int | None, prompt: Prompt) -> int:
    """Gives the seed of one answer, which is the same for any batch size and after a resume.

    The answer is then the same, too, except where a draw depends on rounding, which differs between
    batch sizes. A run's ``seed`` of ``None`` counts as 0. The result is less than 2^60.
    """
    return int(hashlib.sha256(f"{seed or 0} {prompt.key}".encode()).hexdigest()[:15], 16)


def draw(logits: torch.Tensor, temperature: float, generator: torch.Generator) -> int:
    """Draws a token as ``generate`` does with the same seed on a CPU.

    The logits have shape (vocabulary,); the temperature is above 0.
    """
    import torch

    probabilities = torch.softmax(logits.cpu() / temperature, -1)
    return int(torch.multinomial(probabilities, 1, generator=generator))
