"""Loads PEFT adapters into their base, with the tokenizer and chat template saved with them.

An adapter is not merged, because merging can also change other weights, such as input embeddings
that are tied to the output layer. It must act within the layers of its base: kinds that add tokens
to prompts, or act only after certain tokens, are refused, as are adapters to a base whose weights
their initialization changed in a way that can't be repeated.

Training saves a tokenizer and chat template with the adapter, as TRL does. The adapter was trained
on their tokens, so they are used instead of the base's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from cradle_engines.local.revision import WEIGHTS, base_pin, hub_commit, is_commit
from cradle_lib import paths
from cradle_lib.detection.models.model import Model
from cradle_lib.errors import EngineError

# A folder with one of these has a complete tokenizer.
_VOCABULARIES: Final = ("tokenizer.json", "tokenizer.model", "vocab.json")
_TEMPLATE: Final = "chat_template.jinja"
# Initializations that replace the base's weights by a remainder which depends on random numbers or
# on data of the training. PEFT repeats others, such as `pissa` and `olora`, exactly.
_NOT_REPEATED: Final = ("pissa_niter_", "corda", "loftq", "lora_ga")
_OTHER_BASE: Final = (
    "Use it with the base that it was trained on, or merge it where it was trained and use the "
    "folder of the merged model."
)
_OTHER_KIND: Final = "Use an adapter that only changes layers, such as a LoRA, to generate text."
# Tokens of each list in a configuration with which an adapter is tried.
_MOST_TOKENS: Final = 64
# Largest difference between an adapter's layers and PEFT's own forward pass, which only rounding
# on a GPU explains, relative to the standard deviation of the logits.
_TOLERANCE: Final = 0.01


class _KindError(ValueError):
    """An adapter can't be used with any base."""


def tokenizer_in_use(folder: Path) -> str | None:
    """Names the parts that a model takes from its adapter's folder: tokenizer, chat template.

    ``None`` if it takes neither.
    """
    parts = ["tokenizer"] * _has_vocabulary(folder)
    parts += ["chat template"] * (folder / _TEMPLATE).is_file()
    return f"the adapter's {' and '.join(parts)}" if parts else None


def adapter_tokenizer(name: str, folder: Path, base: Any, notice: Callable[[str], None]) -> Any:
    """Gives the tokenizer of a model with an adapter: the adapter's, or else the base's.

    Args:
        name: Name of the model, for messages.
        folder: The folder of its adapter.
        base: The tokenizer of its base; its chat template is replaced if the folder has one.
        notice: Called with a sentence if the two differ.

    Raises:
        EngineError: If the adapter's tokenizer can't be read.
    """
    from transformers import AutoTokenizer

    own, template = base, base.chat_template
    if _has_vocabulary(folder):
        try:
            own = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
        except Exception as error:
            reason = " ".join(str(error).split())[:200]
            raise EngineError(
                f"{name}: the tokenizer of the adapter {paths.shown(folder)} can't be read "
                f"({reason}). Save it again, or remove its files to use the base's."
            ) from error
    if (folder / _TEMPLATE).is_file():
        own.chat_template = (folder / _TEMPLATE).read_text(encoding="utf-8")
    own.chat_template = own.chat_template or template
    differences = [
        f"its {token} is {getattr(own, token)!r}, not {getattr(base, token)!r}"
        for token in ("bos_token", "eos_token", "pad_token", "unk_token")
        if getattr(own, token) != getattr(base, token)
    ]
    if own.get_vocab() != base.get_vocab():
        differences.append(f"it has other tokens ({len(own):,}, not {len(base):,})")
    if own.chat_template != template:
        differences.append("it has another chat template")
    if differences:
        notice(
            f"{name} uses the tokenizer and chat template saved with its adapter, which "
            f"differ from the base's: {'; '.join(differences)}."
        )
    return own


def _has_vocabulary(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _VOCABULARIES)


def apply_adapter(
    lm: Any,
    model: Model,
    folder: Path,
    tokenizer: Any,
    base_tokenizer: Any,
    notice: Callable[[str], None],
) -> Any:
    """Adds an adapter to the layers of a loaded base.

    Args:
        lm: The base, which is changed.
        model: The model, for messages.
        folder: The adapter.
        tokenizer: The tokenizer that the adapter was trained with.
        base_tokenizer: The base's tokenizer.
        notice: Called with a sentence if the adapter was trained on another revision of its base.

    Raises:
        EngineError: If the adapter belongs to another base, can't be read, or changes more than
            layers.
    """
    import peft

    from cradle_engines.local.devices import is_out_of_memory

    rows = len(lm.get_input_embeddings().weight)
    # The base's tokenizer may itself have tokens without an embedding.
    without_embedding = {token for token, id in tokenizer.get_vocab().items() if id >= rows}
    kind = "adapter"
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            config = peft.PeftConfig.from_pretrained(str(folder))
        for warning in warned:
            notice(f"{model.name}: PEFT warns about its adapter: {str(warning.message)[:300]}")
        kind = f"{peft.PeftType(config.peft_type).value} adapter"
        if added := without_embedding - base_tokenizer.get_vocab().keys():
            raise ValueError(f"training added {len(added):,} tokens, such as {min(added)!r}")
        _require_supported(config, model)
        _load_adapter(lm, folder, config, tokenizer)
    except Exception as error:
        if is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split())[:300].rstrip(".")
        remedy = _OTHER_KIND if isinstance(error, _KindError) else _OTHER_BASE
        raise EngineError(
            f"{model.name}: the {kind} {paths.shown(folder)} can't be used with {model.base}: "
            f"{reason}. {remedy}"
        ) from error
    if (loaded := _other_revision(config, model)) is not None:
        notice(
            f"{model.name}: its adapter was trained on revision {config.revision} of its base, and "
            f"{loaded} is loaded. If they differ, pin the first one under `revision`."
        )
    return lm


def _require_supported(config: Any, model: Model) -> None:
    """Checks the base and the kind of an adapter by its configuration.

    Raises:
        ValueError: If the adapter can't be used with this base.
        _KindError: If it can't be used with any base.
    """
    trained_on = config.base_model_name_or_path or model.base
    if model.trained_on is not None:
        is_other = trained_on != model.trained_on
    else:
        # Only the last part of a folder's path is compared.
        is_other = Path(trained_on).name != Path(model.base).name
    if is_other:
        raise ValueError(
            f"it was trained on {trained_on}. If that is the same model under another name, "
            f"set `trained_on` to it: `--set trained_on={trained_on}`, or a field in models.yml; "
            "the run's record will contain it"
        )
    if config.task_type not in (None, "CAUSAL_LM"):
        raise _KindError(f"it was trained for the task {config.task_type}")
    if config.is_prompt_learning:
        raise _KindError("it adds tokens to prompts instead of changing layers")
    if getattr(config, "alora_invocation_tokens", None) is not None:
        raise _KindError("it is an aLoRA, which acts only after `alora_invocation_tokens`")
    start = str(getattr(config, "init_lora_weights", "")).lower()
    if start.startswith(_NOT_REPEATED):
        raise ValueError(
            f"its initialization `{start}` changed the weights of the base, and can't be repeated"
        )


def _other_revision(config: Any, model: Model) -> str | None:
    """Names the base that is loaded, unless it is the revision that the adapter was trained on."""
    named = config.revision
    # Another repository has other commits.
    if model.trained_on is not None or named in (None, model.base_revision):
        return None
    if Path(model.base).is_dir():
        # A folder may have any commit of a branch.
        return "a folder of unknown revision" if is_commit(named) else None
    loaded = base_pin(model)
    try:
        same = hub_commit(model.model_copy(update={"revision": named})) == loaded
    except EngineError:  # Offline, or the revision no longer exists.
        same = False
    return None if same else loaded


def _load_adapter(lm: Any, folder: Path, config: Any, tokenizer: Any) -> None:
    """Adds an adapter to its base.

    Raises:
        ValueError: If the adapter has missing, unexpected or non-finite tensors.
        _KindError: If it acts outside its layers.
    """
    import peft
    import torch
    from safetensors.torch import load_file

    from cradle_engines.local.own_forward import own_logits, sample_ids

    tensors = load_file(folder / WEIGHTS)
    if any(not tensor.isfinite().all() for tensor in tensors.values()):
        raise ValueError("some of its weights are NaN or infinite")
    # The class of models for this task knows all kinds of adapters.
    config.inference_mode, config.task_type = True, "CAUSAL_LM"
    # PEFT warns about tied weights, which matter only for merging.
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        wrapped = peft.get_peft_model(lm, config)
        needed = peft.get_peft_model_state_dict(wrapped, save_embedding_layers=False)
        if missing := sorted(needed.keys() - tensors.keys()):
            raise ValueError(f"it lacks {missing[0]}")
        result = peft.set_peft_model_state_dict(wrapped, tensors)
    # PEFT saves second copies of trained embeddings, and does not read them.
    unexpected = [name for name in result.unexpected_keys if ".modules_to_save." not in name]
    if unexpected:
        raise ValueError(f"the base has no layer for {unexpected[0]}")
    wrapped.eval()
    begin, end = (sample_ids(lm, tokenizer, 24)[i::2] for i in range(2))
    ids = [*begin, *_named_tokens(config), *end]
    expected, found = (own_logits(each, ids) for each in (wrapped, lm))
    difference = (found - expected).square().mean().sqrt()
    # Numbers that overflow fail each question later.
    if expected.isfinite().all() and not difference <= _TOLERANCE * expected.std():
        raise _KindError("its layers alone do not compute what PEFT computes")


def _named_tokens(config: Any) -> list[int]:
    """Lists token ids in an adapter's configuration, because it may act only on these."""
    found: list[int] = []
    for name, value in vars(config).items():
        for part in value.values() if isinstance(value, dict) else [value]:
            if "token" in name and isinstance(part, list):
                found += [id for id in part[:_MOST_TOKENS] if isinstance(id, int)]
    return found
