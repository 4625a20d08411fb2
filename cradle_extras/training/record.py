"""The record of a training: all that is needed to trust its model, or to make it again."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from cradle_extras.training.recipe import Recipe
from cradle_lib import paths
from cradle_lib.errors import EngineError
from cradle_lib.files import write_text
from cradle_lib.record import installed
from cradle_lib.version import commit, library_version

FILE: Final = "training.json"
_PACKAGES: Final = ("torch", "transformers", "tokenizers", "peft", "trl", "accelerate", "datasets")


class TrainingRecord(BaseModel):
    """What was trained on what, how, and what came of it.

    Attributes:
        base: Weights that it began with.
        base_revision: What pins them.
        corpus: Name of the train split.
        fingerprint: Its fingerprint.
        held_out: Fingerprints of the splits that it shares no dialogue with, by name.
        recipe: The recipe.
        prompt_hash: Hash of the prompt template's text.
        date: Date that the chat template prints; ``None`` if it prints none.
        dialogues: Dialogues that were learned.
        turns: Their user turns.
        dropped: User turns that were left out because they were too long.
        tokens: Tokens of one pass.
        plain_tokens: Those of one sequence per turn.
        answer_tokens: Those that the loss is about.
        losses: For each step ``step``, ``epoch``, ``loss``, ``learning_rate`` and ``hours``.
        dev: For each checkpoint ``step``, ``micro_f1``, ``recall``, ``precision``, ``unread``
            (shares) and ``dialogues``; empty if none was scored.
        chosen: The step whose checkpoint was kept.
        hours: Time of all starts.
        machine: Processor or GPU, and how many.
        started: UTC time of the last start.
        version: Version of this library.
        commit: Commit of this repository.
        packages: Versions of the packages that matter.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: str
    base_revision: str | None
    corpus: str
    fingerprint: str
    held_out: dict[str, str]
    recipe: Recipe
    prompt_hash: str
    date: str | None = None
    dialogues: int
    turns: int
    dropped: int
    tokens: int
    plain_tokens: int
    answer_tokens: int
    losses: list[dict[str, float]] = []
    dev: list[dict[str, float]] = []
    chosen: int | None = None
    hours: float = 0.0
    machine: str
    started: str
    version: str
    commit: str
    packages: dict[str, str]

    @classmethod
    def create(cls, **fields: Any) -> TrainingRecord:
        """Makes a record of a training that starts now, on this machine, from this commit."""
        return cls(
            machine=_machine(),
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            version=library_version(),
            commit=commit()[0],
            packages=installed(_PACKAGES),
            **fields,
        )

    @property
    def about(self) -> dict[str, Any]:
        """What two starts of one training must share."""
        shared = {"base", "base_revision", "corpus", "fingerprint", "prompt_hash", "date"}
        # What happens after the training may be decided later.
        recipe = self.recipe.model_dump(exclude={"dev_dialogues"})
        return self.model_dump(include=shared) | {"recipe": recipe}

    def write(self, folder: Path) -> None:
        """Writes it beside the weights."""
        write_text(folder / FILE, self.model_dump_json(indent=1) + "\n")


def read_training(folder: str | Path) -> TrainingRecord:
    """Reads the record of a training.

    Args:
        folder: What :func:`~cradle_extras.training.train_model` wrote; relative to the working
            directory, or else to this repository.

    Returns:
        The record.

    Raises:
        EngineError: If there is none, or it can't be read.
    """
    path = Path(folder) / FILE
    if not path.is_file():
        path = paths.ROOT / path
    try:
        return TrainingRecord.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise EngineError(f"{paths.shown(path)}: there is no record of a training") from None
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise EngineError(f"{paths.shown(path)}: can't be read ({reason})") from error


def _machine() -> str:
    import torch

    if torch.cuda.is_available():
        return f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()}"
    return f"{os.cpu_count()} cores of {platform.processor() or platform.machine()}"
