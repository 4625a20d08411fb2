"""Compares the wave and reference engines on a GPU: their tokens, their speed, and memory.

``make test-gpu`` runs it. It needs no network: the models are tiny random ones of four
architectures, and a random Llama with a billion parameters, which shows the speed. The embedded
model is added if its weights can be had. ``python -m benchmarks.bench_gpu --model ID`` compares
another model instead, an id in ``models.yml`` or a spec. The table is Markdown, for an issue; its
columns are described in ``tests/engines/local/compared.py``.

Exits 1 without a GPU, if an answer is wrong, or if the wave engine can't run a model.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from benchmarks.contestants import MODEL, SAMPLE, select_dialogues
from benchmarks.size import sized
from cradle_engines.local.embedded import embedded_weights
from cradle_lib.detection import Model, resolve
from cradle_lib.errors import EngineError
from tests.engines.local.compared import HEADER, compare
from tests.engines.local.tiny_models import EXACT, make_model, make_random, make_weights

# Tokens of an answer, and the number of dialogues for the reference engine.
TOKENS, FEW = sized((12, 4), (4, 1))
DTYPES = ("float32", "bfloat16", "float16")
BILLION = {
    "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192,
    "initializer_range": 0.02,
}  # fmt: skip


def models(folder: Path, device: str) -> Iterator[Model]:
    """Makes the models, each when it is needed."""
    for family in EXACT:
        weights = make_weights(folder / family, context=4096, family=family)
        # At lower precision, rounding changes the choice of experts in a tiny random model.
        yield from made(weights, f"tiny {family}", DTYPES[: 1 if family == "gpt-oss" else 3])
    with torch.device(device):
        weights = make_random(folder / "large", "llama", **sized(BILLION, {}))
    yield from made(weights, "random Llama", DTYPES[1:])
    try:
        embedded_weights()
        for dtype in sized(DTYPES, ()):
            yield resolve(MODEL, dtype=dtype, max_new_tokens=TOKENS)
    except EngineError as error:
        print(f"The embedded model is left out: {error}", file=sys.stderr)


def made(weights: Path, name: str, dtypes: Sequence[str]) -> list[Model]:
    """Makes the entries of a random model, with a short prompt."""
    update = {"name": name, "prompt": "brief"}
    decoding = [{"dtype": dtype, "max_new_tokens": TOKENS} for dtype in dtypes]
    return [make_model(weights, "wave", **each).model_copy(update=update) for each in decoding]


def card(device: str) -> str:
    """Names the card, and the versions of its driver and of CUDA."""
    if device == "cpu":
        return "CPU"
    driver = subprocess.getoutput("nvidia-smi --query-gpu=driver_version --format=csv,noheader")
    return f"{torch.cuda.get_device_name()}, driver {driver.split()[0]}, CUDA {torch.version.cuda}"


def main() -> bool:
    """Compares the engines, and prints the table row by row.

    Returns:
        Whether no answer is wrong, and the wave engine ran all models.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--model")
    chosen, device = parser.parse_known_args()[0].model, sized("cuda", "cpu")
    if device == "cuda" and not torch.cuda.is_available():
        sys.exit("bench_gpu: PyTorch finds no GPU, so nothing was compared.")
    print(f"{card(device)}, torch {torch.__version__}\n\n{HEADER}", flush=True)
    many, few = (select_dialogues(number, "sample") for number in (SAMPLE, FEW))
    passed = True
    with tempfile.TemporaryDirectory() as folder:
        given = [resolve(chosen, max_new_tokens=TOKENS)] if chosen else models(Path(folder), device)
        for model in given:
            found = compare(model, device, many, few)
            print(found.row(model.name), flush=True)
            passed = passed and found.passed
    return passed


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
