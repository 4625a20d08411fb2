"""The command ``cradle train``."""

from __future__ import annotations

import shlex
from pathlib import Path

from cradle_lib.corpus.release import write_release
from cradle_lib.errors import EngineError

from ...cli.in_process import invoke
from ...engines.local.tiny_models import make_weights
from .dialogues import talks

RECIPE = """
prompt: short
epochs: 1
max_length: 2048
dtype: float32
accumulation: 2
learning_rate: 0.001
adapter: {rank: 2}
"""


def test_the_suggested_command_runs_the_trained_model(tmp_path: Path) -> None:
    weights = make_weights(tmp_path / "weights")
    (tmp_path / "mine.yml").write_text(RECIPE)
    train, dev = tmp_path / "talks-train.parquet", tmp_path / "talks-dev.parquet"
    write_release(talks(4), train)
    write_release(talks(2), dev)
    command = ["train", "--base", f"hf:{weights}", "--corpus", str(train), "--dev", str(dev)]
    command += ["--recipe", str(tmp_path / "mine.yml"), "--out", str(tmp_path / "out")]
    refused = invoke(*command)
    assert isinstance(refused.exception, EngineError)
    assert "shares 2 dialogues" in str(refused.exception)
    done = invoke(*command, "--shared")
    assert done.exit_code == 0, done.output
    (infer,) = (line for line in done.output.splitlines() if line.startswith("cradle infer"))
    words = shlex.split(infer)[1:]
    assert words[words.index("--corpus") + 1] == "FILE"
    words[words.index("FILE")] = str(dev)
    words += ["--out", str(tmp_path / "runs"), "--set", "dtype=float32"]
    words += ["--set", "max_new_tokens=8"]
    ran = invoke(*words)
    # After four steps, no answer is usable, which is exit status 1.
    assert ran.exit_code == 1, ran.output
    assert (tmp_path / "out" / "README.md").read_text().startswith("---\nbase_model:")
