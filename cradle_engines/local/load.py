"""Loads a model's weights, adapter and tokenizer with Transformers; refuses incomplete weights."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cradle_engines.library_logs import quiet
from cradle_engines.local.adapter import adapter_tokenizer, apply_adapter
from cradle_engines.local.checkpoint import IncompleteError, require_all_tensors
from cradle_engines.local.embedded import PREFIX, embedded_pin, embedded_weights
from cradle_engines.local.revision import find_adapter, hub_commit, load_error
from cradle_lib.detection.models.engine import Options, require_packages, short_reason
from cradle_lib.detection.models.model import Model
from cradle_lib.errors import EngineError
from cradle_lib.labels import NONE

# Endings of the names of multimodal models that generate text.
_MULTIMODAL: Final = ("ForConditionalGeneration", "ForCausalLM")
# Values of a configuration with which a model does not read a text from left to right.
_NOT_CAUSAL: Final[dict[str, tuple[Any, ...]]] = {
    "is_encoder_decoder": (True,),
    "is_causal": (False,),
    "use_bidirectional_attention": (True, "all"),
}
# Lists the parts of an embedding model of Sentence Transformers. Its `architectures` may still be
# those of the language model that it was made from.
_POOLING: Final = "modules.json"
# Converts pickled weights; `weights_only`, Transformers' default, runs no code of theirs.
_CONVERT: Final = (
    'python -c "from transformers import AutoModelForCausalLM as M, AutoTokenizer as T; '
    "M.from_pretrained('{0}', dtype='auto', use_safetensors=False).save_pretrained('{1}'); "
    "T.from_pretrained('{0}').save_pretrained('{1}')\""
)
# Tokens whose logits are compared, and tokens after them.
_TOKENS: Final = 12
# The title of Transformers' table of missing and unexpected tensors, which are checked here.
_REPORT: Final = "LOAD REPORT"
# A line of that table for a tensor that is converted from several, one of which is missing or has
# another shape. Its name may list layers: `model.layers.{0, 1}.mlp`.
_CONVERSION: Final = re.compile(r"((?:\{[^}]*\}|[^\s|])+) *\| *CONVERSION")


def load_weights(model: Model, options: Options) -> tuple[Any, Any]:
    """Loads a causal language model and its tokenizer: safetensors only, no code of repositories.

    Embedded weights are downloaded on first use. An adapter becomes part of the layers, and its own
    tokenizer and chat template are used if its folder has them. Warnings of Transformers are passed
    to ``options.notice``.

    Raises:
        EngineError: If the checkpoint is not a causal language model, weights are missing or
            incomplete or can't be reached, or memory runs out.
    """
    with _source(model, options.device) as source:
        base_tokenizer = tokenizer = _base_tokenizer(source)
        dtype = (model.decoding and model.decoding.dtype) or "auto"
        kind, config = _auto_class(source)
        places = options.device_map or place_weights(kind, config, dtype, options.device)
        lm = _from_pretrained(source, kind, dtype, places)
        used = getattr(lm, "hf_device_map", {})
        if len(used) > 1 and not options.device_map:
            options.notice(_spread_over(model, used))
        _require_causal(source, lm, base_tokenizer)
        if (folder := find_adapter(model)) is not None:
            tokenizer = adapter_tokenizer(model.name, folder, base_tokenizer, options.notice)
            lm = apply_adapter(lm, model, folder, tokenizer, base_tokenizer, options.notice)
    for sentence in dict.fromkeys(source.warned):
        if _REPORT not in sentence:
            options.notice(f"{model.name}: Transformers warns: {sentence[:300]}")
    return lm.eval(), tokenizer


def load_tokenizer(model: Model) -> Any:
    """Loads the tokenizer that a model uses, its adapter's if there is one, without the weights.

    Raises:
        EngineError: If it can't be read or reached.
    """
    with _source(model) as source:
        tokenizer = _base_tokenizer(source)
        folder = find_adapter(model)
        if folder is None:
            return tokenizer
        return adapter_tokenizer(model.name, folder, tokenizer, lambda _: None)


def load_generation_config(model: Model) -> Any:
    """Reads the generation settings that a model's checkpoint ships, without its weights.

    Raises:
        EngineError: If they can't be read.
    """
    from transformers import GenerationConfig

    with _source(model) as source:
        return GenerationConfig.from_pretrained(source.place, **source.at_commit)


@dataclass(frozen=True)
class _Source:
    """The base of a model.

    Attributes:
        name: Name of the model, for messages.
        place: The folder or repository of the base.
        at_commit: Its commit, as an argument of Transformers' functions; empty for a folder.
        warned: Warnings of Transformers.
    """

    name: str
    place: str
    at_commit: dict[str, Any]
    warned: list[str]

    def not_causal(self, problem: str) -> EngineError:
        """Makes the error for a checkpoint of another kind."""
        return EngineError(
            f"{self.name}: {self.place} is not a causal language model: {problem}. Use a "
            "checkpoint that generates text from left to right."
        )

    def incomplete(self, problem: str) -> EngineError:
        """Makes the error for missing, unexpected or damaged tensors."""
        return EngineError(
            f"the weights of {self.name} ({self.place}) are damaged or incomplete: {problem}"
        )


@contextmanager
def _source(model: Model, device: str | None = None) -> Iterator[_Source]:
    """Gives the base of a model.

    Any exception of Transformers and its dependencies in the block becomes an :class:`EngineError`.
    Their output is silenced; warnings are collected.

    Args:
        model: The model.
        device: The user's choice of a device.

    Raises:
        EngineError: If the weights can't be found, read or loaded, or memory runs out.
    """
    from cradle_engines.local.devices import is_out_of_memory

    place, at_commit = model.base, {}
    if place.startswith(PREFIX):
        require_packages("gguf", extra="local", model=model)
        pin = embedded_pin(place)
        if model.base_revision not in (None, pin):
            raise EngineError(
                f"{model.name} pins {model.base_revision}, but the embedded weights are {pin}. "
                "Pin these, or leave `revision` out."
            )
        place = str(embedded_weights())
    elif not Path(place).is_dir():
        at_commit = {"revision": hub_commit(model)}
    with quiet() as warned:
        source = _Source(model.name, place, at_commit, warned)
        try:
            yield source
        except IncompleteError as error:
            raise source.incomplete(str(error)) from None
        except EngineError:
            raise
        except Exception as error:
            report = "\n".join(warned)
            if is_out_of_memory(error) or is_out_of_memory(RuntimeError(report)):
                raise EngineError(
                    f"{model.name} does not fit on {_one_device(device)}. It needs "
                    f"{model.hardware or 'more memory'}; --set device_map=auto spreads it over "
                    "several GPUs."
                ) from error
            if found := _CONVERSION.search(report):
                problem = f"a tensor needed for {found[1]} is missing or has another shape"
                hint = "Download or save it again."
                raise source.incomplete(f"{problem}. {hint}") from error
            raise load_error(model.name, place, error) from error


def _base_tokenizer(source: _Source) -> Any:
    """Loads the base's tokenizer.

    Raises:
        EngineError: If the base is an adapter. Transformers would load the base that the adapter
            names, which the record would not contain. Also if there is no tokenizer.
    """
    from transformers import AutoTokenizer
    from transformers.utils.peft_utils import find_adapter_config_file

    place, at_commit = source.place, source.at_commit
    found = find_adapter_config_file(place, revision=at_commit.get("revision"))
    if found is not None:
        settings = json.loads(Path(found).read_text(encoding="utf-8"))
        base = settings.get("base_model_name_or_path") or "BASE"
        raise EngineError(
            f"{source.name}: {place} is an adapter. Name its base too, in models.yml as `weights: "
            f"{base} + {place}`. With another copy of that base, add `trained_on: {base}`."
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(place, trust_remote_code=False, **at_commit)
        # Without files, some classes make a tokenizer without a vocabulary.
        if not set(tokenizer(NONE)["input_ids"]) - set(tokenizer.all_special_ids):
            raise ValueError("it has no vocabulary")
    except Exception as error:
        reason = short_reason(str(error).strip().partition("\n")[0]).rstrip(" .:")
        into = "the folder"
        if at_commit:
            into = f"a folder with its files (`hf download {place} --local-dir FOLDER`)"
        raise EngineError(
            f"{source.name}: the tokenizer of {place} is missing or can't be read ({reason}). Copy "
            "tokenizer.json, tokenizer_config.json and chat_template.jinja of the model that it "
            f"was trained from into {into}."
        ) from error
    return tokenizer


def place_weights(
    kind: Any, config: Any, dtype: str, device: str | None
) -> str | dict[str, str] | None:
    """Chooses where weights are loaded, so that no GPU needs a copy of them in host memory.

    Args:
        kind: Class of the model.
        config: Its configuration.
        dtype: Number format of the weights.
        device: The user's choice.

    Returns:
        A ``device_map`` of Transformers: one device, or ``auto`` if there are several GPUs and the
        first is too small. ``None`` for the CPU.
    """
    import torch

    from cradle_engines.local.devices import fits_on_gpu, weights_size

    if device is None and torch.cuda.device_count() > 1:
        size = weights_size(kind, config, dtype)
        return {"": "cuda"} if fits_on_gpu(size) else "auto"
    place = _one_device(device)
    return None if place == "cpu" else {"": place}


def _one_device(chosen: str | None) -> str:
    """The user's choice of a device, or else the first GPU, or else the CPU."""
    import torch

    return chosen or ("cuda" if torch.cuda.is_available() else "cpu")


def _spread_over(model: Model, used: Mapping[str, object]) -> str:
    """Says over which devices a model was spread, given the device of each of its parts."""
    places = dict.fromkeys(str(place) for place in used.values())
    named = ", ".join(f"GPU {place}" if place.isdecimal() else place for place in places)
    sentence = f"{model.name} does not fit on one GPU. Its layers are spread over {named}."
    outside = {"cpu", "disk"} & places.keys()
    return sentence + " Layers outside the GPUs make it many times slower." * bool(outside)


def _from_pretrained(source: _Source, kind: Any, dtype: str, device_map: Any) -> Any:
    """Loads the weights as a class of Transformers.

    Raises:
        EngineError: If they are not complete.
    """
    import torch

    places = {"device_map": device_map} if device_map else {}
    # A fixed seed, so that values that an architecture initializes are the same in each start.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            lm, info = kind.from_pretrained(
                source.place,
                dtype=dtype,
                trust_remote_code=False,
                use_safetensors=True,
                output_loading_info=True,
                # Otherwise Transformers raises an error that does not name the tensors.
                ignore_mismatched_sizes=True,
                **source.at_commit,
                **places,
            )
        except OSError as error:
            if not _is_pickled(source):
                raise
            folder = f"{Path(source.place).name}-safetensors"
            raise EngineError(
                f"{source.name}: {source.place} has no safetensors, only pickled weights (.bin), "
                "which are not read because they can contain code. Convert them with "
                f"`{_CONVERT.format(source.place, folder)}` and use the folder {folder}."
            ) from error
    require_all_tensors(lm, info)
    return lm


def _is_pickled(source: _Source) -> bool:
    """Whether a base has pickled weights and no safetensors."""
    from huggingface_hub import list_repo_files

    names: list[str] = []
    if not source.at_commit:
        names = [file.name for file in Path(source.place).iterdir()]
    else:
        with suppress(Exception):  # No network, or no access.
            names = list_repo_files(source.place, **source.at_commit)
    pickled = any(re.fullmatch(r"pytorch_model.*\.bin", name) for name in names)
    return pickled and not any(name.endswith(".safetensors") for name in names)


def _auto_class(source: _Source) -> tuple[Any, Any]:
    """Finds the class and configuration of a checkpoint.

    Multimodal models are loaded with all their parts.

    Raises:
        EngineError: If the configuration is neither of a causal language model nor of a multimodal
            model with a causal text part. Transformers would load many others as one, with an
            output layer that was trained for another task.
    """
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
    from transformers.models.auto import modeling_auto as known
    from transformers.utils import cached_file

    place, at_commit = source.place, source.at_commit
    config = AutoConfig.from_pretrained(place, trust_remote_code=False, **at_commit)
    names = config.architectures or []
    multimodal = known.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.get(config.model_type, "")
    causal = known.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(config.model_type)
    named = ", ".join(names) or "no model"
    if multimodal.endswith(_MULTIMODAL) and multimodal in names:
        found: Any = AutoModelForImageTextToText
    elif any(name == causal or name.endswith("ForCausalLM") for name in names):
        found = AutoModelForCausalLM
    else:
        raise source.not_causal(f"the `architectures` of its config.json name {named}")
    if cached_file(place, _POOLING, _raise_exceptions_for_missing_entries=False, **at_commit):
        raise source.not_causal(f"it is an embedding model ({_POOLING})")
    for part in (config, config.get_text_config()):
        for name, values in _NOT_CAUSAL.items():
            if (value := getattr(part, name, None)) in values:
                raise source.not_causal(f"{named} with `{name}: {value}`")
    return found, config


def _require_causal(source: _Source, lm: Any, tokenizer: Any) -> None:
    """Checks that the logits after a token do not depend on later tokens.

    Raises:
        EngineError: If they do, or if the model can't compute them.
    """
    from cradle_engines.local.devices import is_out_of_memory
    from cradle_engines.local.own_forward import is_same, own_logits, sample_ids

    begin, end, other = (sample_ids(lm, tokenizer, 3 * _TOKENS)[i::3] for i in range(3))
    try:
        one, two = (own_logits(lm, begin + rest)[:_TOKENS] for rest in (end, other))
    except Exception as error:
        if is_out_of_memory(error):
            raise
        reason = short_reason(f"{type(error).__name__}: {error}")
        raise EngineError(
            f"{source.name}: {source.place} can't compute a text of {2 * _TOKENS} tokens "
            f"({reason}). Use a checkpoint that generates text."
        ) from error
    # Numbers that overflow fail each question later.
    if one.isfinite().all() and not is_same(lm, one, two):
        raise source.not_causal(f"the outputs of {type(lm).__name__} depend on later tokens")
