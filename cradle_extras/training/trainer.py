"""TRL's trainer for token trees: a batch is one dialogue, with the loss on its answers only.

Imported only when a training starts, because importing TRL takes seconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import PrinterCallback, TrainerCallback
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from cradle_extras.training.checkpoints import Progress, loss_curve
from cradle_extras.training.recipe import Recipe
from cradle_extras.training.sequences import TokenTree
from cradle_lib.errors import EngineError


class TreeTrainer(SFTTrainer):
    """Trains on one tree at a time, with checkpoints in a folder, and reports after every step."""

    def __init__(
        self,
        lm: Any,
        tokenizer: Any,
        trees: Sequence[TokenTree],
        recipe: Recipe,
        out: Path,
        progress: Progress,
    ) -> None:
        self._weight = recipe.label_weight
        self._progress, self._hours_before = progress, 0.0
        # As `accelerate launch` passes it on.
        by_fsdp = os.environ.get("FSDP_ACTIVATION_CHECKPOINTING") == "true"
        settings = SFTConfig(
            str(out),
            num_train_epochs=recipe.epochs,
            per_device_train_batch_size=1,
            gradient_accumulation_steps=recipe.accumulation,
            learning_rate=recipe.learning_rate,
            lr_scheduler_type="linear",
            warmup_steps=recipe.warmup,
            weight_decay=recipe.weight_decay,
            logging_steps=1,
            save_strategy="steps" if recipe.save_steps else "epoch",
            save_steps=recipe.save_steps or 500,
            seed=recipe.seed,
            data_seed=recipe.seed,
            # The loss is that of the answers only.
            router_aux_loss_coef=0.0,
            bf16=recipe.dtype == "bfloat16",
            use_cpu=not torch.cuda.is_available(),
            activation_checkpointing=recipe.gradient_checkpointing and not by_fsdp,
            dataset_kwargs={"skip_prepare_dataset": True},
            remove_unused_columns=False,
            dataloader_pin_memory=torch.cuda.is_available(),
            disable_tqdm=True,
            report_to=[],
        )
        super().__init__(
            model=lm,
            args=settings,
            train_dataset=Dataset.from_dict({"tree": list(range(len(trees)))}),
            data_collator=lambda rows: batch(trees[rows[0]["tree"]], lm.config),
            processing_class=tokenizer,
            peft_config=lora(lm, recipe),
            callbacks=[_AfterEachEpoch()],
        )
        # It would print each step, which the progress bar shows.
        self.remove_callback(PrinterCallback)

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """Sums the loss over the tokens of answers, divided by their number in the whole step.

        Raises:
            EngineError: If the loss is not finite.
        """
        targets, weights = inputs.pop("labels")[0], inputs.pop("weights")
        # The logits of other positions are not computed.
        logits = model(**inputs, use_cache=False).logits[0].float()
        each = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
        each = each * torch.where(weights, self._weight, 1.0)
        number = len(targets) if num_items_in_batch is None else num_items_in_batch
        loss = each.sum() / number
        if not torch.isfinite(loss):
            raise EngineError(
                f"the loss became {float(loss.detach())} at step {self.state.global_step + 1}. The "
                "last good checkpoint is kept; try a lower learning_rate, or dtype: float32."
            )
        spread = self.args.average_tokens_across_devices and num_items_in_batch is not None
        return loss * self.accelerator.num_processes if spread else loss

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Adds the hours to each entry of the loss curve, and reports progress."""
        if "loss" in logs:
            logs["hours"] = self._hours_before + (time.monotonic() - self._began) / 3600
            self._progress(self.state.global_step, self.state.max_steps, float(logs["loss"]))
        super().log(logs, start_time)

    def create_model_card(self, *args: Any, **more: Any) -> None:
        """Does nothing: :mod:`~cradle_extras.training.card` writes the card."""

    def run(self, last: Path | None) -> None:
        """Trains from the start, or from the last complete checkpoint.

        Raises:
            EngineError: If the loss is not finite.
        """
        if last is not None:
            self._hours_before = loss_curve(last)[-1]["hours"]
        self._began = time.monotonic()
        self.train(resume_from_checkpoint=None if last is None else str(last))


class _AfterEachEpoch(TrainerCallback):
    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_save = True


def batch(tree: TokenTree, config: Any) -> dict[str, Any]:
    """Converts a tree of T tokens, n of them in answers, to the inputs of a forward pass and loss.

    These are ``input_ids`` and ``position_ids`` (1, T), ``attention_mask`` (1, 1, T, T; one for
    each kind of layer if some have a sliding window), ``logits_to_keep`` (n,; the token before each
    target), ``labels`` (1, n; the targets), ``weights`` (n,; whether each belongs to a turn with a
    label).
    """
    return {
        "input_ids": torch.from_numpy(tree.ids)[None],
        "position_ids": torch.from_numpy(tree.depths)[None],
        "attention_mask": _masks(tree, config),
        "logits_to_keep": torch.from_numpy(tree.parents[tree.targets]),
        "labels": torch.from_numpy(tree.ids[tree.targets])[None],
        "weights": torch.from_numpy(tree.labelled),
    }


def _masks(tree: TokenTree, config: Any) -> torch.Tensor | dict[str, torch.Tensor]:
    full = torch.from_numpy(tree.attention)
    text = config.get_text_config()

    def shaped(mask: torch.Tensor) -> torch.Tensor:
        if config._attn_implementation != "sdpa":
            # Transformers' own attention adds the mask to the scores.
            mask = torch.where(mask, 0.0, torch.finfo(torch.float32).min)
        return mask[None, None]

    if "sliding_attention" not in (getattr(text, "layer_types", None) or ()):
        return shaped(full)
    depths = torch.from_numpy(tree.depths)
    in_window = depths[:, None] - depths[None, :] < text.sliding_window
    return {"full_attention": shaped(full), "sliding_attention": shaped(full & in_window)}


def lora(lm: Any, recipe: Recipe) -> LoraConfig | None:
    """Gives the adapter's configuration for PEFT; ``None`` if all weights are trained."""
    settings = recipe.adapter
    if settings is None:
        return None
    total = lm.config.get_text_config().num_hidden_layers
    upper = settings.layers and list(range(max(0, total - settings.layers), total))
    return LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        target_modules=list(settings.targets),
        layers_to_transform=upper,
        layers_pattern="layers" if upper else None,
        task_type="CAUSAL_LM",
    )
