"""The model card: purpose, limits and training of a model, in Hugging Face's format.

``card.md`` is the template of its text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from cradle_engines.local.embedded import PREFIX
from cradle_extras.training.record import TrainingRecord
from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.files import write_text

FILE: Final = "README.md"
TEMPLATE: Final = Path(__file__).with_name("card.md")
_SHORT: Final = paths.DATA / "short_texts" / "short_texts.csv"
# Names of the embedded weights on the Hub.
_ORIGINS: Final = {"SmolLM2-135M-Instruct": "HuggingFaceTB/SmolLM2-135M-Instruct"}


def _is_invented(record: TrainingRecord) -> bool:
    """Whether the model learned only texts that ship with this project."""
    shipped = {load_corpus("surrogate", "train").fingerprint, load_corpus(_SHORT).fingerprint}
    return {record.fingerprint, record.extra or record.fingerprint} <= shipped


def write_card(folder: Path, record: TrainingRecord) -> None:
    """Writes the card of the trained model in a folder, with the folder's name as its title."""
    from jinja2 import Template

    origin = _ORIGINS.get(record.base.removeprefix(PREFIX), record.base)
    head: dict[str, Any] = {
        "base_model": origin,
        "library_name": "transformers" if record.recipe.adapter is None else "peft",
        "pipeline_tag": "text-generation",
        "tags": ["crisis-detection", "mental-health", "lora", "trl", "sft"],
    }
    if origin in _ORIGINS.values():
        head["license"] = "apache-2.0"
    template = Template(TEMPLATE.read_text(encoding="utf-8"), keep_trailing_newline=True)
    text = template.render(
        head=yaml.safe_dump(head, sort_keys=False),
        name=folder.resolve().name,
        origin=origin,
        record=record,
        recipe=record.recipe,
        invented=_is_invented(record),
    )
    write_text(folder / FILE, text)
