"""Speed of training: one sequence per dialogue against one per turn, with the same supervision.

Run with ``python -m benchmarks.bench_training``. One sequence per turn is what trainers do with a
data set of prompts and completions; the loss is Transformers' own, over the completion. Both ways
run forward and backward passes through the same adapter. They alternate after each dialogue, so
that other processes slow down both. The sums of the losses must be equal.
"""

from __future__ import annotations

import os
import sys
from time import process_time
from typing import Any, Final

from benchmarks.results import Row, save
from benchmarks.size import SMALL, sized, tiny_model
from cradle_engines.local.local_engine import Local, load_local, wait_passively
from cradle_lib.corpus import Dialogue, load_corpus
from cradle_lib.detection.models.engine import Options
from cradle_lib.detection.models.registry import resolve
from cradle_lib.prompts import Template, load_template

BASE: Final = "smollm2-135m"
PROMPTS: Final = sized(("append", "brief"), ("brief",))
DIALOGUES: Final = sized(2, 1)
# Minimum ratios of tokens and of processor time. Turns of the brief prompt share fewer tokens.
FEWER: Final = {"append": 6.0, "brief": 2.0}
FASTER: Final = {"append": 4.0, "brief": 2.0}
TOLERANCE: Final = 1e-3
CAVEAT: Final = (
    "Forward and backward passes of SmolLM2-135M with an adapter over the first two dialogues of "
    "the train split, one sequence per dialogue against one per turn: how many times fewer tokens, "
    "and how many times less processor time."
)


def tree_way(lm: Any, local: Local, template: Template, dialogue: Dialogue) -> tuple[int, float]:
    """Runs a dialogue as one sequence. Returns its number of tokens and the sum of its losses."""
    import torch

    from cradle_extras.training.sequences import token_tree
    from cradle_extras.training.trainer import batch

    tree = token_tree(dialogue, template, local)
    inputs = batch(tree, local.lm.config)
    targets = inputs.pop("labels")[0]
    inputs.pop("weights")
    logits = lm(**inputs, use_cache=False).logits[0]
    loss = torch.nn.functional.cross_entropy(logits.float(), targets, reduction="sum")
    loss.backward()
    return len(tree.ids), float(loss.detach())


def plain_way(lm: Any, local: Local, template: Template, dialogue: Dialogue) -> tuple[int, float]:
    """Runs a dialogue as a sequence per turn. Returns the number of tokens and sum of losses."""
    import torch

    from cradle_extras.training.sequences import questions

    tokens, total = 0, 0.0
    for prompt, answer, _ in questions(dialogue, template, local):
        ids = torch.tensor([[*prompt, *answer]])
        labels = ids.clone()
        labels[0, : len(prompt)] = -100
        mean = lm(input_ids=ids, labels=labels, use_cache=False).loss
        loss = mean * len(answer)
        loss.backward()
        tokens, total = tokens + ids.shape[1], total + float(loss.detach())
    return tokens, total


def main() -> bool:
    """Measures, prints a table, and saves it.

    Returns:
        Whether all targets were met and the losses are equal.
    """
    wait_passively()
    from peft import LoraConfig, get_peft_model

    load = os.getloadavg()[0]
    entry = tiny_model() if SMALL else resolve(BASE, dtype="float32")
    local = load_local(entry, Options(device="cpu"))
    lm = get_peft_model(
        local.lm, LoraConfig(r=8, task_type="CAUSAL_LM", target_modules="all-linear")
    )
    lm.train()
    dialogues = list(load_corpus("surrogate", "train"))[:DIALOGUES]
    rows, same = [], True
    for name in PROMPTS:
        template = load_template(name)
        sums = {"tree": [0.0] * 3, "plain": [0.0] * 3}
        for dialogue in dialogues:
            for way, run in (("tree", tree_way), ("plain", plain_way)):
                used = process_time()
                tokens, loss = run(lm, local, template, dialogue)
                for place, value in enumerate((tokens, loss, process_time() - used)):
                    sums[way][place] += value
                lm.zero_grad()
        tree, plain = sums["tree"], sums["plain"]
        same &= abs(tree[1] - plain[1]) / plain[1] < TOLERANCE
        losses = f"sums of losses {tree[1]:.4f} and {plain[1]:.4f}"
        note = f"{tree[0]:,.0f} tokens instead of {plain[0]:,.0f}; {losses}"
        rows.append(Row(f"tokens, prompt {name}", plain[0] / tree[0], FEWER[name], note=note))
        note = f"{tree[2]:.1f} s of processor time instead of {plain[2]:.1f}"
        rows.append(Row(f"time, prompt {name}", plain[2] / tree[2], FASTER[name], note=note))
    return save("training", rows, load, CAVEAT) and same


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
