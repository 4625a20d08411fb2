"""The model card: purpose, limits, training and scores of a model, in Hugging Face's format.

``card.md`` is the template of its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from cradle_extras.training.record import TrainingRecord
from cradle_lib.cli.console import percent
from cradle_lib.detection.local.embedded import PREFIX
from cradle_lib.detection.predictions import Predictions
from cradle_lib.files import write_text
from cradle_lib.scoring.evaluate import evaluate

FILE: Final = "README.md"
TEMPLATE: Final = Path(__file__).with_name("card.md")
_SURROGATE: Final = (
    " The dialogues are synthetic: written by a program, about nobody. **A score on them "
    "says nothing about how well the model recognizes what people really write.**"
)
# Where the embedded weights come from, as the Hub knows it.
_ORIGINS: Final = {"SmolLM2-135M-Instruct": "HuggingFaceTB/SmolLM2-135M-Instruct"}
_SCORES: Final = ("micro_f1", "micro_precision", "micro_recall", "macro_f1", "exact_match")


def write_card(
    folder: Path, record: TrainingRecord, runs: Sequence[Predictions] = (), name: str | None = None
) -> None:
    """Writes the card of a trained model beside it, with the scores of runs and their intervals.

    The name of the model is by default that of the folder.
    """
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
    held_out = ", ".join(f"`{split}`" for split in record.held_out) or "any other that was compared"
    text = TEMPLATE.read_text(encoding="utf-8").format(
        head=yaml.safe_dump(head, sort_keys=False),
        name=name or folder.resolve().name,
        origin=origin,
        record=record,
        recipe=recipe,
        revision=record.base_revision or "revision not pinned",
        left_out=f", {record.dropped:,} left out as too long" if record.dropped else "",
        held_out=held_out,
        surrogate=_SURROGATE if "surrogate" in record.corpus else "",
        adapter=trained,
        steps=len(record.losses),
        choice=_choice(record),
        scores=_table(runs),
    )
    write_text(folder / FILE, text)


def _choice(record: TrainingRecord) -> str:
    if not record.dev:
        return "the last; no other was compared."
    scores = ", ".join(f"{row['micro_f1'] * 100:.1f} after {row['step']:.0f}" for row in record.dev)
    number = int(record.dev[0]["dialogues"])
    return f"chosen by micro F1 over {number:,} dialogues of the dev split ({scores})."


def _table(runs: Sequence[Predictions]) -> str:
    if not runs:
        return "Not measured yet."
    rows = []
    for run in runs:
        mode = run.record.decoding.get("mode") or "free"
        row = {"run": f"{run.corpus.name}, {mode}, {len(run.corpus):,} dialogues"}
        evaluation = evaluate(run)
        for name in _SCORES:
            row[name.replace("_", " ")] = percent(*map(float, evaluation.estimate(name)), digits=1)
        rows.append(row | {"unread": percent(1 - float(run.ok.mean()))})
    columns = list(rows[0])
    lines = [columns, ["---"] * len(columns), *(list(row.values()) for row in rows)]
    settings = runs[0].record.decoding.items()
    asked = ", ".join(f"`{field}: {value}`" for field, value in settings if field != "mode")
    title = "Turn level, in percent, with 95 % intervals over dialogues. Decoding: "
    return f"{title}{asked or 'the defaults'}.\n\n" + "\n".join(
        f"| {' | '.join(line)} |" for line in lines
    )
