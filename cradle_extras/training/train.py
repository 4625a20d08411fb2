"""Trains a model on a corpus, chooses a checkpoint, and writes its record and card.

Splits must not share dialogues, because a model can't be tested on its training data.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from cradle_engines.library_logs import quiet
from cradle_engines.local.local_engine import load_local, wait_passively
from cradle_engines.local.revision import base_pin
from cradle_extras.training.card import FILE as CARD
from cradle_extras.training.card import write_card
from cradle_extras.training.checkpoints import (
    Progress,
    complete_checkpoints,
    epochs_done,
    loss_curve,
    score_checkpoint,
    step_of,
    store_checkpoint,
    trained_model,
)
from cradle_extras.training.recipe import Recipe, load_extra, load_recipe
from cradle_extras.training.record import FILE, TrainingRecord, read_training
from cradle_extras.training.sequences import token_tree, without_beginning
from cradle_lib import paths
from cradle_lib.corpus import Corpus, Dialogue, load_corpus
from cradle_lib.detection.models.engine import Options, require_packages
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.models.registry import resolve
from cradle_lib.detection.protocol.neutralise import neutralise
from cradle_lib.errors import EngineError
from cradle_lib.files import visible_files
from cradle_lib.prompts import load_template

# Files that a training writes, besides its record.
_WRITTEN: Final = ("checkpoint-*", "*.safetensors", CARD)


@dataclass(frozen=True, slots=True)
class Trained:
    """The result of a training.

    Attributes:
        folder: Folder of the adapter, or of the full model if the recipe has none, with record and
            card.
        record: The record.
        model: The model's entry, ready for :func:`~cradle_lib.detection.runs.run.run`.
    """

    folder: Path
    record: TrainingRecord
    model: Model


def train_model(
    base: str | Model,
    train: Corpus,
    out: Path | str,
    *,
    recipe: str | Path | Recipe = "lora",
    dev: Corpus | None = None,
    test: Corpus | None = None,
    shared: bool = False,
    options: Options | None = None,
    progress: Progress = lambda *_: None,
    notice: Callable[[str], None] = lambda _: None,
) -> Trained:
    """Trains a model and keeps the best checkpoint; resumes from the last complete checkpoint.

    Args:
        base: An id in the registry, a spec such as ``hf:ORG/NAME``, or an entry.
        train: The train split, with gold labels.
        out: Folder for checkpoints and the result.
        recipe: A recipe, the name of a shipped recipe, or a YAML file.
        dev: The dev split. The checkpoint of each epoch is scored on it, and the one with the
            highest micro F1 is kept; without a dev split, the last one.
        test: The test split, only checked for dialogues that it shares with the train split.
        shared: Whether the splits, and the probes, may share dialogues.
        options: Settings of this machine for the scoring of checkpoints.
        progress: Called after every step with its number, the number of all steps, and the loss.
        notice: Called with messages for the user.

    Returns:
        The result. If ``accelerate`` started several processes, no checkpoint is chosen; the same
        call in one process does that.

    Raises:
        EngineError: If the base can't be trained, no turn has a label, splits share dialogues with
            each other or with the probes, the recipe's extra file is missing, no turn fits into the
            length, the length exceeds the base's context, the folder contains another training or
            other weights, the loss is not finite, or the disk is full.
        CradleError: If the base can't be loaded.
    """
    recipe = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    folder = Path(out)
    before = _earlier_start(folder)
    model = resolve(base, prompt=recipe.prompt, notice=notice)
    if model.kind != "local" or model.adapter:
        raise EngineError(
            f"{model.name} can't be trained on this machine. Name weights without an adapter: an "
            "id in the registry, or a spec such as hf:ORG/NAME."
        )
    require_packages("torch", "transformers", extra="local", model=model)
    require_packages("trl", "peft", "datasets", extra="train", model=model)
    train, dev = _labelled(train, notice), None if dev is None else dev.labelled
    extra = load_extra(recipe)
    extra = None if extra is None else _labelled(extra, notice)
    for split, use in ((train, "there is nothing to learn"), (dev, "no checkpoint has a score")):
        if split is not None and not split.gold.any():
            raise EngineError(
                f"{split.name}: no user turn has a label, so {use}. Name a split with gold labels."
            )
    held_out = [split for split in (dev, test) if split is not None and not shared]
    for split in () if shared else (*held_out, load_corpus("probes")):
        _require_separate(train, split)
        if extra is not None:
            _require_separate(extra, split)
    from accelerate.utils.memory import clear_device_cache

    wait_passively()
    # In prompts, all starts and the scoring of checkpoints use the date of the first start.
    date = model.decoding.date if model.decoding else None
    if date is None and before is not None:
        date = before.date
    learner = resolve(model, dtype=recipe.base_dtype, date=date)
    last = next(reversed(complete_checkpoints(folder)), None)
    finished = last is not None and epochs_done(last) >= recipe.epochs
    local = load_local(learner, Options(device=_start_device(finished)))
    model = resolve(model, date=local.decoding.date)
    if not local.tokenizer.chat_template:
        raise EngineError(
            f"{model.name} has no chat template, so it is unknown where an answer begins and ends. "
            "Train its instruction-tuned version."
        )
    if local.context is not None and recipe.max_length > local.context:
        raise EngineError(
            f"the recipe's max_length is {recipe.max_length:,} tokens, and {model.name} reads at "
            f"most {local.context:,}. Set `max_length` in a copy of the recipe."
        )
    chosen, template = list(train), load_template(recipe.prompt)
    if recipe.dialogues is not None:
        order = np.random.default_rng(recipe.seed).permutation(len(chosen))
        chosen = [chosen[index] for index in order[: recipe.dialogues]]
    if extra is not None:
        chosen += extra
    generator = np.random.default_rng([recipe.seed, 1])
    cropped = generator.random(len(chosen)) < recipe.crop
    chosen = [
        without_beginning(dialogue, generator) if crop else dialogue
        for dialogue, crop in zip(chosen, cropped, strict=True)
    ]
    trees = [token_tree(dialogue, template, local, recipe.max_length) for dialogue in chosen]
    trees = [tree for tree in trees if len(tree.targets)]
    if not trees:
        raise EngineError(
            f"no first user turn, with prompt and answer, fits into {recipe.max_length:,} tokens. "
            "Raise `max_length` in the recipe."
        )
    record = TrainingRecord.create(
        base=model.base,
        base_revision=base_pin(model),
        corpus=train.name,
        fingerprint=train.fingerprint,
        extra=None if extra is None else extra.fingerprint,
        held_out={split.name: split.fingerprint for split in held_out},
        recipe=recipe,
        prompt_hash=template.hash,
        date=model.decoding.date if model.decoding else None,
        dialogues=len(chosen),
        turns=sum(tree.turns for tree in trees),
        dropped=sum(tree.dropped for tree in trees),
        tokens=sum(len(tree.ids) for tree in trees),
        plain_tokens=sum(tree.plain for tree in trees),
        answer_tokens=sum(len(tree.targets) for tree in trees),
    )
    if before is not None:
        _require_same(folder, before, record)
    if record.dropped:
        notice(f"{record.dropped:,} user turns beyond {recipe.max_length:,} tokens are left out")
    if not finished:
        from cradle_extras.training.trainer import TreeTrainer

        # A finished training keeps its record until its checkpoints are scored again.
        if os.environ.get("RANK", "0") == "0":
            record.write(folder)
        with quiet():
            TreeTrainer(local.lm, local.tokenizer, trees, recipe, folder, progress).run(last)
    # Otherwise these weights would remain in memory while checkpoints are scored.
    del local
    clear_device_cache(garbage_collection=True)
    if not _is_alone():
        notice("Trained. To choose a checkpoint, repeat the command in one process.")
        return Trained(folder, record, trained_model(model, folder))
    candidates = complete_checkpoints(folder)
    losses, scores = loss_curve(candidates[-1]), []
    for checkpoint in candidates:
        if dev is not None and epochs_done(checkpoint).is_integer():
            notice(f"scoring {checkpoint.name} on {dev.name}")
            scores.append(score_checkpoint(checkpoint, model, dev, recipe, options))
    # Of equal checkpoints the earliest.
    best = max(scores, key=lambda row: (row["micro_f1"], -row["step"]), default=None)
    if dev is not None and not any(row["micro_f1"] for row in scores):
        notice(f"every checkpoint has a micro F1 of 0 on {dev.name}: the earliest one is kept")
    step = step_of(candidates[-1]) if best is None else int(best["step"])
    store_checkpoint(folder / f"checkpoint-{step}", folder, model, recipe.dtype)
    hours = losses[-1]["hours"]
    found = {"losses": losses, "dev": scores, "chosen": step, "hours": hours}
    record = record.model_copy(update=found)
    record.write(folder)
    write_card(folder, record)
    return Trained(folder, record, trained_model(model, folder))


def _labelled(corpus: Corpus, notice: Callable[[str], None]) -> Corpus:
    """Leaves out the dialogues without gold labels, and says so."""
    found = corpus.labelled
    if others := len(corpus) - len(found):
        notice(f"{corpus.name}: {others:,} dialogues without gold labels are left out")
    if not len(found):
        raise EngineError(f"{corpus.name}: no dialogue has gold labels. Add a column of labels.")
    return found


def _start_device(finished: bool) -> str:
    """The device onto which the base is loaded.

    With several processes it is the CPU: the trainer gives each GPU its part of the model. After
    the last step only the tokenizer is used.
    """
    import torch

    return "cuda" if _is_alone() and not finished and torch.cuda.is_available() else "cpu"


def _is_alone() -> bool:
    """Whether no other process takes part in the training."""
    return int(os.environ.get("WORLD_SIZE", "1")) <= 1


def _require_separate(train: Corpus, held_out: Corpus) -> None:
    """Refuses splits that share a dialogue: equal user turns, ignoring case and spacing."""
    known = {_user_text(dialogue): dialogue.id for dialogue in held_out}
    shared = [(d.id, known[text]) for d in train if (text := _user_text(d)) in known]
    if shared:
        here, there = shared[0]
        raise EngineError(
            f"{train.name} shares {len(shared):,} dialogues with {held_out.name} (the first is "
            f"{here} and {there}): a score on them would be meaningless. Remove them, or allow "
            "them with --shared."
        )


def _user_text(dialogue: Dialogue) -> str:
    said = (neutralise(dialogue.utterance(turn)) for turn in dialogue.user_turns)
    return "\n".join(" ".join(text.lower().split()) for text in said)


def _earlier_start(folder: Path) -> TrainingRecord | None:
    """Reads the record of an earlier start; refuses a folder with files of something else."""
    if folder.exists() and not folder.is_dir():
        raise EngineError(f"{paths.shown(folder)}: is a file. Name a folder for the training.")
    if (folder / FILE).is_file():
        return read_training(folder)
    others = [file for pattern in _WRITTEN for file in visible_files(folder, pattern)]
    if others:
        raise EngineError(
            f"{paths.shown(folder)}: contains {others[0].name} and no {FILE}, so it is not the "
            "folder of a training. Name a new folder."
        )
    return None


def _require_same(folder: Path, earlier: TrainingRecord, record: TrainingRecord) -> None:
    before, now = earlier.about, record.about
    changed = [name for name in now if now[name] != before[name]]
    if "recipe" in changed:
        own, other = before["recipe"], now["recipe"]
        settings = ", ".join(name for name in other if other[name] != own[name])
        changed[changed.index("recipe")] = f"recipe ({settings})"
    if changed:
        raise EngineError(
            f"{paths.shown(folder)}: contains a training with another {', '.join(changed)}. "
            "Choose another folder, or remove this one."
        )
