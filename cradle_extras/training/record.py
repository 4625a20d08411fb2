"""The record of a training: everything needed to check or to reproduce its model."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from cradle_extras.training.recipe import Recipe, load_extra
from cradle_lib import paths
from cradle_lib.arguments import checked
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.errors import EngineError
from cradle_lib.files import write_text
from cradle_lib.record import installed
from cradle_lib.validation import faults
from cradle_lib.version import commit, library_version

FILE: Final = "training.json"
_PACKAGES: Final = ("torch", "transformers", "tokenizers", "peft", "trl", "accelerate", "datasets")


class TrainingRecord(BaseModel):
    """Data, settings and results of a training.

    Attributes:
        base: The weights that were fine-tuned.
        base_revision: Commit or checksum of the base.
        corpus: Name of the train split.
        fingerprint: Fingerprint of the train split.
        extra: Fingerprint of the recipe's extra dialogues; ``None`` if it has none.
        held_out: Name to fingerprint of the splits that share no dialogue with the train split;
            empty if this was not checked.
        recipe: The recipe.
        prompt_hash: Hash of the prompt template's text.
        date: Date that the chat template prints; ``None`` if it prints none.
        dialogues: Number of training dialogues.
        turns: Number of their user turns, without those dropped.
        dropped: Number of user turns that were left out because of their length.
        tokens: Tokens in an epoch.
        plain_tokens: Tokens that an epoch would have with one sequence per turn.
        answer_tokens: Tokens of answers in an epoch, on which the loss is computed.
        losses: For each step ``step``, ``epoch``, ``loss``, ``learning_rate`` and ``hours``.
        dev: For each scored checkpoint ``step``, ``micro_f1``, ``micro_precision``,
            ``micro_recall``, ``unread`` (shares) and ``dialogues``.
        chosen: The step whose checkpoint was kept.
        hours: Training time of all starts together.
        machine: Type and number of the GPUs or processor cores.
        started: UTC time of the last start.
        version: Version of this library.
        commit: Commit of this repository.
        packages: Versions of the packages used in training.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: str
    base_revision: str | None
    corpus: str
    fingerprint: str
    extra: str | None = None
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
        """The fields that must be equal to resume a training."""
        shared = {"base", "base_revision", "corpus", "fingerprint", "extra", "prompt_hash", "date"}
        # Without effect on the weights, so they may change; the content of `extra` is above.
        recipe = self.recipe.model_dump(
            exclude={"dev_dialogues", "gradient_checkpointing", "extra"}
        )
        return self.model_dump(include=shared) | {"recipe": recipe}

    def write(self, folder: Path) -> None:
        """Writes the record to the folder of the weights."""
        write_text(folder / FILE, self.model_dump_json(indent=1) + "\n")


@checked
def read_training(folder: str | Path) -> TrainingRecord:
    """Reads the record of a training.

    Args:
        folder: A folder that :func:`~cradle_extras.training.train.train_model` wrote; relative to
            the working directory, or else to this repository.

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
    except ValidationError as error:
        problem = faults(error, TrainingRecord, quoted=True)
        raise EngineError(f"{paths.shown(path)}: {problem}") from None
    except (OSError, ValueError) as error:
        raise EngineError(f"{paths.shown(path)}: can't be read ({error})") from error


@checked
def load_learned(
    record: TrainingRecord, file: str | Path = ""
) -> tuple[Corpus | None, Corpus | None]:
    """Loads the dialogues that a model learned.

    Args:
        record: The record of the training.
        file: The train split; by default, that of the surrogate or the release, if the record
            names one of them.

    Returns:
        The train split, ``None`` if it is another file and not given; and the recipe's extra
        dialogues, ``None`` if it has none. Dialogues without gold labels are left out.

    Raises:
        EngineError: If the dialogues are not those that were learned.
        CorpusError: If they can't be read.
    """
    name = file or {"surrogate-train": "surrogate", "hub-train": "hub"}.get(record.corpus)
    train = load_corpus(name, "train").labelled if name else None
    extra = load_extra(record.recipe)
    extra = None if extra is None else extra.labelled
    for found, known in ((train, record.fingerprint), (extra, record.extra)):
        if found is not None and found.fingerprint != known:
            raise EngineError(
                f"{found.name} has the fingerprint {found.fingerprint}, and the record of the "
                f"training on {record.corpus} has {known}. Restore the file, or train again."
            )
    return train, extra


def _machine() -> str:
    import torch

    if torch.cuda.is_available():
        return f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()}"
    return f"{os.cpu_count()} cores of {platform.processor() or platform.machine()}"
