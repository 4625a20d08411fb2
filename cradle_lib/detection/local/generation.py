"""Settings of decoding: the recorded ones, without those that a checkpoint ships.

A checkpoint may ship a ``generation_config.json`` with sampling settings, penalties or beams, which
Transformers' ``generate`` obeys silently. Here the configuration is built from the settings of the
entry, for both engines. An entry with ``from_checkpoint: true`` takes the checkpoint's settings
over; they are then recorded one by one, and those that can't be obeyed are refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from cradle_lib.detection.session import Prompt
from cradle_lib.errors import EngineError

if TYPE_CHECKING:
    import torch

# Settings that act when a token is drawn, and only then.
_SAMPLING: Final = (
    "temperature", "top_k", "top_p", "min_p", "top_h", "typical_p", "epsilon_cutoff", "eta_cutoff",
)  # fmt: skip
# Settings that change the logits of a token, drawn or not.
_PROCESSING: Final = (
    "repetition_penalty", "encoder_repetition_penalty", "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size", "bad_words_ids", "sequence_bias", "suppress_tokens",
    "begin_suppress_tokens", "min_length", "min_new_tokens", "forced_bos_token_id",
    "forced_eos_token_id", "exponential_decay_length_penalty", "remove_invalid_values",
    "renormalize_logits",
)  # fmt: skip
# Limits of the length: the entry's own limit always counts.
_LENGTH: Final = ("max_length", "max_new_tokens")
# Settings that change no answer: token ids, which are read elsewhere, memory, speed, outputs, and
# those of beams and assistants, without which they do nothing.
_HARMLESS: Final = frozenset({
    "eos_token_id", "bos_token_id", "pad_token_id", "decoder_start_token_id",
    "use_cache", "cache_implementation", "cache_config", "max_cache_len", "prefill_chunk_size",
    "low_memory", "compile_config", "disable_compile", "continuous_batching_config",
    "output_attentions", "output_hidden_states", "output_scores", "output_logits",
    "return_dict_in_generate",
    "early_stopping", "length_penalty", "diversity_penalty",
    "is_assistant", "num_assistant_tokens", "num_assistant_tokens_schedule",
    "assistant_confidence_threshold", "assistant_lookbehind", "target_lookbehind",
    "max_matching_ngram_size",
    "return_legacy_cache", "transformers_version", "trust_remote_code", "attn_implementation",
    "torch_dtype", "dtype", "_from_model_config", "_commit_hash", "_name_or_path",
})  # fmt: skip


def _neutral() -> dict[str, Any]:
    """Values with which settings do nothing; all other settings do nothing if they are not set.

    They are Transformers' own, but for ``top_k``: without one, tokens are drawn from all.
    """
    from transformers import GenerationConfig

    return GenerationConfig._get_default_generation_params() | {"top_k": 0, "guidance_scale": 1.0}


def checkpoint_settings(config: Any) -> dict[str, Any]:
    """Lists the settings of a checkpoint that would change an answer.

    Args:
        config: Its ``GenerationConfig``.

    Returns:
        Name and value of each, including names that Transformers does not know, and lengths.
    """
    neutral, found = _neutral(), {}
    for name, value in sorted(config.to_dict().items()):
        if name == "cache_implementation" and value == "quantized":
            # The only cache that rounds keys and values.
            found[name] = value
        elif name not in _HARMLESS:
            # Zero is a token.
            unset = value is None if name.endswith("_token_id") else not value
            if not (unset or value == neutral.get(name)):
                found[name] = value
    return found


def taken_over(config: Any, name: str, temperature: float | None) -> dict[str, Any]:
    """Gives the settings of a checkpoint that an entry with ``from_checkpoint`` decodes with.

    Args:
        config: The checkpoint's ``GenerationConfig``.
        name: The model's name.
        temperature: The temperature that the entry itself sets, which replaces the checkpoint's.

    Returns:
        Settings that change the answer, by name, ready for JSON. ``temperature`` is among them if
        tokens are drawn; without it decoding is greedy.

    Raises:
        EngineError: If one of the settings can't be obeyed.
    """
    settings = checkpoint_settings(config)
    usable = {"do_sample", *_SAMPLING, *_PROCESSING, *_LENGTH}
    if refused := sorted(settings.keys() - usable):
        raise EngineError(
            f"{name}: its checkpoint decodes with {_listed(settings, refused)}, which the engines "
            "here do not do. Leave `from_checkpoint` out, and set what you need in `decoding`."
        )
    if temperature is None and settings.get("do_sample"):
        temperature = settings.get("temperature", 1.0)
    names = [*_PROCESSING, *(_SAMPLING if temperature else ())]
    taken = {key: _plain(settings[key]) for key in names if key in settings}
    return taken | ({} if temperature is None else {"temperature": temperature})


def _plain(value: Any) -> Any:
    """Gives a setting as JSON keeps it: biases of sequences as pairs, tuples as lists."""
    if isinstance(value, dict):
        return [[list(ids), bias] for ids, bias in value.items()]
    return list(value) if isinstance(value, tuple) else value


def unused(config: Any, temperature: float | None) -> str | None:
    """Lists the settings of a checkpoint that are not used; ``None`` if it has none.

    Args:
        config: The checkpoint's ``GenerationConfig``.
        temperature: The entry's own; with one, tokens are drawn as the checkpoint may ask for.
    """
    settings = checkpoint_settings(config)
    own = {"do_sample": bool(temperature), "temperature": temperature}
    left = [name for name, value in settings.items() if own.get(name) != value]
    return _listed(settings, left) if left else None


def _listed(settings: dict[str, Any], names: list[str]) -> str:
    return ", ".join(f"{name} {str(settings[name])[:60]}" for name in names)


def generation_config(settings: dict[str, Any], max_new_tokens: int, ends: list[int]) -> Any:
    """Builds the configuration for ``generate`` from settings alone.

    Args:
        settings: As :func:`taken_over` gives them.
        max_new_tokens: Most tokens of an answer.
        ends: Ids that end an answer.
    """
    from transformers import GenerationConfig

    sampled = bool(settings.get("temperature"))
    left_out = ("max_length", *(() if sampled else _SAMPLING))
    values = {key: value for key, value in (_neutral() | settings).items() if key not in left_out}
    values |= {
        "do_sample": sampled,
        "max_new_tokens": max_new_tokens,
        "eos_token_id": ends or None,
        # One answer at a time is never padded, and Transformers wants an id.
        "pad_token_id": min(ends, default=None),
    }
    kind: Any = GenerationConfig
    return kind(**values)


@contextmanager
def without_own_settings(lm: Any) -> Iterator[None]:
    """Removes a model's own generation settings for a block: ``generate`` would mix them in."""
    from transformers import GenerationConfig

    own, empty = lm.generation_config, GenerationConfig  # type: Any, Any
    lm.generation_config = empty()
    try:
        yield
    finally:
        lm.generation_config = own


def add_bias(settings: dict[str, Any], token: int, bias: float) -> dict[str, Any]:
    """Adds to the logit of a token, besides the biases that settings have already."""
    biases = {tuple(ids): value for ids, value in settings.get("sequence_bias", ())}
    biases[token,] = biases.get((token,), 0.0) + bias
    return settings | {"sequence_bias": [[list(ids), value] for ids, value in biases.items()]}


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
