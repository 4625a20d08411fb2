"""Training: one sequence per dialogue against one per turn, the same supervision in both.

Run with ``python -m benchmarks.bench_training``. The plain way is what a trainer does with a data
set of prompts and completions: each user turn is a sequence of its own, and Transformers' own loss
is taken over its completion. Both ways run forward and backward through the same adapter, a
dialogue in turn, so that a busy neighbour slows down both. The sums of the losses must be equal.
"""

from __future__ import annotations

import sys
from time import perf_counter, process_time
from typing import Any, Final

from cradle_lib.corpus import Dialogue, load_corpus
from cradle_lib.detection.engine import Options
from cradle_lib.detection.local.loading import Local, load_local, wait_passively
from cradle_lib.detection.models.specs import resolve
from cradle_lib.prompts import Template, load_template

BASE: Final = "smollm2-135m"
PROMPTS: Final = ("append", "brief")
DIALOGUES: Final = 2
TOKENS, TIME, NEAR = 6.0, 4.0, 1e-3


def tree_way(lm: Any, local: Local, template: Template, dialogue: Dialogue) -> tuple[int, float]:
    """Runs one dialogue as one sequence; gives its tokens and the sum of its losses."""
    import torch

    from cradle_lib.training.sequences import token_tree
    from cradle_lib.training.trainer import batch

    tree = token_tree(dialogue, template, local)
    inputs = batch(tree, local.lm.config)
    targets = inputs.pop("labels")[0]
    inputs.pop("weights")
    logits = lm(**inputs, use_cache=False).logits[0]
    loss = torch.nn.functional.cross_entropy(logits.float(), targets, reduction="sum")
    loss.backward()
    return len(tree.ids), float(loss.detach())


def plain_way(lm: Any, local: Local, template: Template, dialogue: Dialogue) -> tuple[int, float]:
    """Runs each turn of a dialogue as a sequence; gives all tokens and the sum of all losses."""
    import torch

    from cradle_lib.training.sequences import questions

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
    """Prints a table for each prompt; gives whether all targets are met by the first."""
    wait_passively()
    from peft import LoraConfig, get_peft_model

    local = load_local(resolve(BASE, dtype="float32"), Options(device="cpu"))
    lm = get_peft_model(
        local.lm, LoraConfig(r=8, task_type="CAUSAL_LM", target_modules="all-linear")
    )
    lm.train()
    dialogues = list(load_corpus("surrogate", "train"))[:DIALOGUES]
    met = []
    for name in PROMPTS:
        template = load_template(name)
        sums = {"tree": [0.0] * 4, "plain": [0.0] * 4}
        for dialogue in dialogues:
            for way, run in (("tree", tree_way), ("plain", plain_way)):
                start, used = perf_counter(), process_time()
                tokens, loss = run(lm, local, template, dialogue)
                spent = perf_counter() - start, process_time() - used
                for place, value in enumerate((tokens, loss, *spent)):
                    sums[way][place] += value
                lm.zero_grad()
        (tree, plain) = sums["tree"], sums["plain"]
        fewer, faster = plain[0] / tree[0], plain[2] / tree[2]
        apart = abs(tree[1] - plain[1]) / plain[1]
        print(
            f"prompt {name}: {tree[0]:,.0f} tokens against {plain[0]:,.0f}, {fewer:.1f} times "
            f"fewer (target {TOKENS:g}); {tree[2]:.1f} s against {plain[2]:.1f} s, {faster:.1f} "
            f"times less (target {TIME:g}; of processor {plain[3] / tree[3]:.1f}); sums of losses "
            f"{tree[1]:.4f} and {plain[1]:.4f}"
        )
        met.append(fewer >= TOKENS and faster >= TIME and apart < NEAR)
    return met[0]


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
