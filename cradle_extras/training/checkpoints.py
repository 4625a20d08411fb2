"""Lists, scores and stores the checkpoints of a training.

Checkpoints are scored on the dev split by the benchmark's protocol, with the model's own
predictions in the history. The test split is not used.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

from cradle_engines.local.revision import WEIGHTS
from cradle_extras.training.recipe import Recipe
from cradle_lib.corpus import Corpus
from cradle_lib.detection.models.adapters import CONFIG
from cradle_lib.detection.models.engine import Options
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.runs.predictions import load_predictions
from cradle_lib.detection.runs.run import run
from cradle_lib.files import replacing, visible_files, write_text
from cradle_lib.scoring.evaluate import evaluate

# The last file of a checkpoint to be written: a folder that has it is complete.
STATE: Final = "trainer_state.json"
_NAME: Final = re.compile(r"checkpoint-\d+")
_DEV: Final = "dev.jsonl"
#: Called after every step with its number, the number of all steps, and the loss.
Progress: TypeAlias = Callable[[int, int, float], None]


def complete_checkpoints(folder: Path) -> list[Path]:
    """Lists the complete checkpoints in a folder, oldest first."""
    found = visible_files(folder, "checkpoint-*")
    complete = (path for path in found if _NAME.fullmatch(path.name) and (path / STATE).is_file())
    return sorted(complete, key=step_of)


def step_of(checkpoint: Path) -> int:
    """The step after which a checkpoint was saved."""
    return int(checkpoint.name.rpartition("-")[2])


def epochs_done(checkpoint: Path) -> float:
    """The number of epochs done when a checkpoint was saved, possibly fractional."""
    # Rounded, because fractions of epochs are summed as floating-point numbers.
    return round(float(_state(checkpoint)["epoch"]), 6)


def loss_curve(checkpoint: Path) -> list[dict[str, float]]:
    """Gives ``step``, ``epoch``, ``loss``, ``learning_rate`` and ``hours`` of each step."""
    names = ("step", "epoch", "loss", "learning_rate", "hours")
    logged = (entry for entry in _state(checkpoint)["log_history"] if "loss" in entry)
    return [{name: float(entry[name]) for name in names if name in entry} for entry in logged]


def _state(checkpoint: Path) -> dict[str, Any]:
    state: dict[str, Any] = json.loads((checkpoint / STATE).read_text(encoding="utf-8"))
    return state


def store_checkpoint(checkpoint: Path, folder: Path, model: Model, dtype: str) -> None:
    """Copies the files for inference from a checkpoint.

    Weights of a full model are converted to ``dtype``, those of an adapter to bfloat16. The
    adapter's configuration names ``model`` as its base.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if (checkpoint / CONFIG).is_file():
        _convert(checkpoint / WEIGHTS, folder / WEIGHTS, "bfloat16")
        changes = {"base_model_name_or_path": model.base, "inference_mode": True}
        _change(checkpoint / CONFIG, folder / CONFIG, changes)
        return
    for file in visible_files(checkpoint):
        if file.suffix == ".safetensors":
            _convert(file, folder / file.name, dtype)
        elif file.name == "config.json":
            _change(file, folder / file.name, {"dtype": dtype})
        elif file.suffix in {".json", ".jinja"} and file.name != STATE:
            with replacing(folder / file.name) as part:
                shutil.copyfile(file, part)


def _convert(file: Path, to: Path, dtype: str) -> None:
    """Copies a file of weights with its floating-point numbers in another format."""
    import torch
    from safetensors.torch import load_file, save_file

    weights = load_file(file)
    for name, tensor in weights.items():
        if tensor.is_floating_point():
            weights[name] = tensor.to(getattr(torch, dtype))
    with replacing(to) as part:
        save_file(weights, part, metadata={"format": "pt"})


def _change(file: Path, to: Path, changes: dict[str, Any]) -> None:
    """Copies a JSON file with some fields changed."""
    settings: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    write_text(to, json.dumps(settings | changes, indent=2, sort_keys=True) + "\n")


def trained_model(model: Model, folder: Path) -> Model:
    """Gives the entry of the model that :func:`store_checkpoint` stored in a folder, for a run."""
    changed = folder if not (folder / CONFIG).is_file() else f"{model.base} + {folder}"
    return model.model_copy(update={"weights": str(changed), "revision": model.base_revision})


def score_checkpoint(
    checkpoint: Path, model: Model, dev: Corpus, recipe: Recipe, options: Options | None
) -> dict[str, float]:
    """Scores a checkpoint on the recipe's sample of the dev split; resumes an interrupted run.

    ``model`` is the base, with the prompt and decoding of the training. Gives the ``step``,
    turn-level ``micro_f1``, ``micro_precision`` and ``micro_recall``, ``unread`` (the share of
    unusable answers), and the number of ``dialogues``.
    """
    stored = checkpoint / "stored"
    store_checkpoint(checkpoint, stored, model, recipe.dtype)
    entry = trained_model(model, stored)
    sample = recipe.dev_dialogues
    journal = run(entry, dev, out=checkpoint / _DEV, sample=sample, options=options)
    predictions = load_predictions(journal, dev, partial=sample is not None)
    evaluation = evaluate(predictions, draws=0)
    names = ("micro_f1", "micro_precision", "micro_recall")
    return {
        "step": float(step_of(checkpoint)),
        **{name: float(evaluation.estimate(name).value) for name in names},
        "unread": 1 - float(predictions.ok.mean()),
        "dialogues": float(len(predictions.corpus)),
    }
