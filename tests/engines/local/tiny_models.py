"""Tiny random models with real tokenizers, built in the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PreTrainedTokenizerFast

from cradle_lib.corpus import Dialogue
from cradle_lib.detection import Model, Session
from cradle_lib.detection.models.model import Decoding
from cradle_lib.detection.protocol.session import Prompt
from cradle_lib.labels import LABELS
from cradle_lib.prompts import load_template

CHAT = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% if loud %}!{% endif %}{% endif %}"
)
LIMIT = 12


def make_tokenizer(folder: Path, chat: str | None) -> None:
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=400,
        special_tokens=["<|end|>", "<|user|>", "<|assistant|>", "<|final|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["User: MODEL_TAG: none Listener:", *LABELS] * 3, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>")
    fast.chat_template = chat
    fast.save_pretrained(folder)


#: Architecture and settings by family; shared attention serves all of them.
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {"head_dim": 64}),
    "qwen3": ("qwen3", {"head_dim": 16}),
    # Sliding windows much shorter than the prompts, between layers of full attention.
    "gemma3": ("gemma3_text", {"head_dim": 16, "sliding_window": 8, "query_pre_attn_scalar": 16}),
    # Sliding windows, attention sinks and experts.
    "gpt-oss": (
        "gpt_oss",
        {
            "head_dim": 16,
            "sliding_window": 8,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        },
    ),
}

#: Their names.
EXACT = list(FAMILIES)


def make_weights(
    folder: Path,
    chat: str | None = CHAT,
    context: int = 2048,
    family: str = "llama",
    layers: int = 2,
) -> Path:
    kind, special = FAMILIES[family]
    settings: dict[str, Any] = {
        "num_hidden_layers": layers,
        "max_position_embeddings": context,
        "bos_token_id": None,
        # Large initial weights make answers depend on the prompt.
        "initializer_range": 0.6,
    }
    return make_random(folder, kind, chat, **(settings | special))


def make_random(folder: Path, kind: str, chat: str | None = CHAT, **settings: Any) -> Path:
    """Saves a tiny model of any architecture of Transformers, such as ``mistral``."""
    torch.manual_seed(7)
    sizes: dict[str, Any] = {
        "vocab_size": 400, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 2048,
        # Tied embeddings make a random model repeat its last token.
        "bos_token_id": 1, "eos_token_id": 0, "pad_token_id": 0, "tie_word_embeddings": False,
        "initializer_range": 0.5,
    }  # fmt: skip
    config = CONFIG_MAPPING[kind](**(sizes | settings))
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)
    make_tokenizer(folder, chat)
    return folder


def change_settings(folder: Path, name: str, **changes: Any) -> None:
    """Changes fields of a JSON file."""
    content = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(content | changes))


def teach(folder: Path, texts: list[list[int]]) -> Path:
    """Trains a tiny model to write texts, given as token ids."""
    lm: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    rows = [torch.tensor([ids]) for ids in texts]
    optimizer = torch.optim.Adam(lm.parameters(), 1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        loss: Any = sum(lm(input_ids=row, labels=row).loss for row in rows)
        loss.backward()
        optimizer.step()
        if loss < 0.02:
            break
    lm.save_pretrained(folder)
    return folder


def first_prompt(dialogue: Dialogue, template: str = "short") -> Prompt:
    prompt = Session(dialogue, load_template(template)).prompt
    assert prompt is not None
    return prompt


def make_model(folder: Path, engine: Any = "reference", **decoding: Any) -> Model:
    return Model(
        id="tiny",
        name="Tiny",
        group="open",
        engine=engine,
        weights=str(folder),
        prompt="short",
        decoding=Decoding(**({"max_new_tokens": LIMIT, "dtype": "float32"} | decoding)),
    )
