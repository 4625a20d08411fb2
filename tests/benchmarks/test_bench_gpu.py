"""The comparison of engines for a GPU, on the CPU."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import bench_gpu
from cradle_engines.local.wave import runner
from cradle_lib import paths
from cradle_lib.corpus import load_corpus

from ..engines.local import compared
from ..engines.local.compared import HEADER, compare
from ..engines.local.tiny_models import make_weights


def disturb(monkeypatch: pytest.MonkeyPatch, amount: float) -> None:
    """Adds noise to the logits of the wave engine, but not while it is proved on loading."""
    forward, chance = runner.forward, torch.Generator().manual_seed(1)

    def noisy(*arguments: Any) -> torch.Tensor:
        logits = forward(*arguments)
        return logits + amount * torch.randn(logits.shape, generator=chance)

    monkeypatch.setattr(runner, "forward", noisy)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rounding_gives_ties_and_faults_give_wrong_answers(
    dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = make_weights(tmp_path / "tiny", context=4096)
    monkeypatch.setattr(bench_gpu, "TOKENS", 4)
    [model] = bench_gpu.made(weights, "tiny", [dtype])
    dialogues = sorted(load_corpus("surrogate"), key=lambda each: len(each.user_turns))[:2]
    found = compare(model, "cpu", dialogues, dialogues[:1])
    assert found.passed
    assert (found.dtype, found.same + found.ties) == (dtype, 1.0)
    columns, _, row = (line.split("|") for line in f"{HEADER}\n{found.row('tiny')}".splitlines())
    assert len(columns) == len(row)
    assert float(row[6]) > 0 < float(row[7])
    for amount, tolerance, passes in (
        (20.0, 0.25, False),
        (20.0, 1e9, True),
        (math.nan, 1e9, False),
    ):
        with monkeypatch.context() as patch:
            disturb(patch, amount)
            patch.setattr(compared, "tolerance", lambda _, tolerance=tolerance: tolerance)
            disturbed = compare(model, "cpu", dialogues[:1], dialogues[:1])
        assert disturbed.passed is passes
        assert disturbed.same < 1


def test_without_a_gpu_the_command_fails_with_one_line() -> None:
    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_gpu"],
        capture_output=True,
        text=True,
        check=False,
        cwd=paths.ROOT,
        env=hidden,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == "bench_gpu: PyTorch finds no GPU, so nothing was compared.\n"
