"""The model card: purpose, limits and training of a model, in Hugging Face's format.

``card.md`` is the template of its text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from cradle_extras.training.record import TrainingRecord
from cradle_lib.detection.local.embedded import PREFIX
from cradle_lib.files import write_text

FILE: Final = "README.md"
TEMPLATE: Final = Path(__file__).with_name("card.md")
_SURROGATE: Final = (
    " The dialogues are synthetic: written by a program, about nobody. **A score on them "
    "says nothing about how well the model recognizes what people really write.**"
)
# Where the embedded weights come from, as the Hub knows it.
_ORIGINS: Final = {"SmolLM2-135M-Instruct": "HuggingFaceTB/SmolLM2-135M-Instruct"}


def write_card(folder: Path, record: TrainingRecord) -> None:
    """Writes the card of the trained model in a folder, named like the folder."""
    recipe, adapter = record.recipe, record.recipe.adapter
    origin = _ORIGINS.get(record.base.removeprefix(PREFIX), record.base)
    head: dict[str, Any] = {
        "base_model": origin,
        "library_name": "transformers" if adapter is None else "peft",
        "pipeline_tag": "text-generation",
        "language": "en",
        "tags": ["crisis-detection", "mental-health", "lora", "trl", "sft"],
    }
    if origin in _ORIGINS.values():
        head["license"] = "apache-2.0"
    trained = "All weights were trained."
    if adapter is not None:
        layers = "all layers" if adapter.layers is None else f"the upper {adapter.layers} layers"
        trained = f"An adapter (LoRA, rank {adapter.rank}, alpha {adapter.alpha}) in {layers}."
    choice = "the last; no other was compared."
    if record.dev:
        scores = ", ".join(f"{r['micro_f1'] * 100:.1f} after {r['step']:.0f}" for r in record.dev)
        number = int(record.dev[0]["dialogues"])
        choice = f"chosen by micro F1 over {number:,} dialogues of the dev split ({scores})."
    held_out = ", ".join(f"`{split}`" for split in record.held_out) or "any other that was compared"
    text = TEMPLATE.read_text(encoding="utf-8").format(
        head=yaml.safe_dump(head, sort_keys=False),
        name=folder.resolve().name,
        origin=origin,
        record=record,
        recipe=recipe,
        revision=record.base_revision or "revision not pinned",
        left_out=f", {record.dropped:,} left out as too long" if record.dropped else "",
        held_out=held_out,
        surrogate=_SURROGATE if "surrogate" in record.corpus else "",
        adapter=trained,
        steps=len(record.losses),
        choice=choice,
    )
    write_text(folder / FILE, text)
