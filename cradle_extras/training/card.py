"""The model card: purpose, limits, training and scores of a model, in Hugging Face's format.

``card.md`` is the template of its text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from cradle_extras.training.record import TrainingRecord
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

    It calls the model by name, by default the folder's.
    """
    name = name or folder.resolve().name
    origin = _ORIGINS.get(record.base.removeprefix(PREFIX), record.base)
    head: dict[str, Any] = {
        "base_model": origin,
        "library_name": "transformers" if record.recipe.adapter is None else "peft",
        "pipeline_tag": "text-generation",
        "language": "en",
        "tags": ["crisis-detection", "mental-health", "lora", "trl", "sft"],
    }
    if runs:
        head["model-index"] = [{"name": name, "results": [_result(run) for run in runs]}]
    if origin in _ORIGINS.values():
        head["license"] = "apache-2.0"
    text = f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n\n{_body(name, origin, record, runs)}"
    write_text(folder / FILE, text)


def _body(name: str, origin: str, record: TrainingRecord, runs: Sequence[Predictions]) -> str:
    recipe = record.recipe
    adapter = "All weights were trained."
    if recipe.adapter is not None:
        upper = recipe.adapter.layers
        adapter = (
            f"An adapter (LoRA, rank {recipe.adapter.rank}, alpha {recipe.adapter.alpha}) in "
            f"{'all layers' if upper is None else f'the upper {upper} layers'}; the base is frozen."
        )
    surrogate = _SURROGATE if "surrogate" in record.corpus else ""
    held_out = ", ".join(f"`{split}`" for split in record.held_out) or "any other that was compared"
    losses = [row["loss"] for row in record.losses]
    curve = ""
    if losses:
        tenth = max(1, len(losses) // 10)
        first, last = sum(losses[:tenth]) / tenth, sum(losses[-tenth:]) / tenth
        curve = f"Mean loss of the first and last tenth: {first:.3f}, {last:.3f}."
    return TEMPLATE.read_text(encoding="utf-8").format(
        name=name,
        origin=origin,
        record=record,
        recipe=recipe,
        revision=record.base_revision or "revision not pinned",
        left_out=f", {record.dropped:,} left out as too long" if record.dropped else "",
        held_out=held_out,
        surrogate=surrogate,
        adapter=adapter,
        epochs="epoch" if recipe.epochs == 1 else "epochs",
        steps=len(losses),
        curve=curve,
        choice=_choice(record),
        scores=_table(runs),
    )


def _choice(record: TrainingRecord) -> str:
    if not record.dev:
        return "the last; no other was compared."
    scores = ", ".join(f"{row['micro_f1'] * 100:.1f} after {row['step']:.0f}" for row in record.dev)
    number = int(record.dev[0]["dialogues"])
    return f"chosen by micro F1 over {number:,} dialogues of the dev split ({scores})."


def _table(runs: Sequence[Predictions]) -> str:
    if not runs:
        return "Not measured yet."
    settings = runs[0].record.decoding.items()
    asked = ", ".join(f"`{field}: {value}`" for field, value in settings if field != "mode")
    lines = [
        "Turn level, in percent, with 95 % intervals over dialogues. "
        f"Decoding: {asked or 'the defaults'}.",
        "",
        "| run | " + " | ".join(name.replace("_", " ") for name in _SCORES) + " | unread |",
        "| --- |" + " --- |" * (len(_SCORES) + 1),
    ]
    for run in runs:
        evaluation = evaluate(run)
        cells = [f"{run.corpus.name}, {_mode(run)}, {len(run.corpus):,} dialogues"]
        for name in _SCORES:
            value, low, high = (100 * float(part) for part in evaluation.estimate(name))
            interval = "" if math.isnan(low + high) else f" [{low:.1f}, {high:.1f}]"
            cells.append(f"{value:.1f}{interval}")
        cells.append(f"{(1 - run.ok.mean()) * 100:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _result(run: Predictions) -> dict[str, Any]:
    evaluation = evaluate(run, draws=0)
    values = {name: round(float(evaluation.estimate(name).value) * 100, 2) for name in _SCORES}
    return {
        "task": {"type": "text-generation", "name": f"turn-level crisis detection, {_mode(run)}"},
        "dataset": {"type": run.corpus.name, "name": run.corpus.name},
        "metrics": [
            {"type": name, "name": f"turn-level {name}", "value": value}
            for name, value in values.items()
        ],
    }


def _mode(run: Predictions) -> str:
    return str(run.record.decoding.get("mode") or "free")
