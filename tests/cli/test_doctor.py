"""``cradle doctor`` and ``cradle serve-command`` as a user meets them, with GPUs imagined."""

from __future__ import annotations

import json

import pytest

from cradle_lib.cli.commands import doctor
from cradle_lib.detection import load_registry
from cradle_lib.detection.models import hosting
from cradle_lib.detection.models.hosting import GIGABYTE, Gpu
from cradle_lib.errors import EngineError, RegistryError

from .in_process import invoke


def see(monkeypatch: pytest.MonkeyPatch, *gpus: Gpu) -> None:
    for module in (doctor, hosting):
        monkeypatch.setattr(module, "seen_gpus", lambda: list(gpus))


def test_what_fits_is_listed_for_every_model_with_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    see(monkeypatch, Gpu("Imagined", 80 * GIGABYTE, 79 * GIGABYTE))
    content = json.loads(invoke("doctor", "--json").stdout)
    assert content["gpus"] == [{"name": "Imagined", "memory": 80 * 10**9, "free": 79 * 10**9}]
    fits = {row["id"]: row["fits"] for row in content["models"]}
    assert set(fits) == {model.id for model in load_registry().sound if model.shape}
    assert fits["qwen3-14b-vllm"]
    assert not fits["llama-3.3-70b-vllm"]
    shown = invoke("doctor").stdout
    assert "GPU 0: Imagined, 79 of 80 GB free" in shown
    assert "No model of this table was run by this project." in " ".join(shown.split())


def test_without_a_gpu_the_doctor_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    see(monkeypatch)
    assert "No GPU that PyTorch sees." in invoke("doctor").stdout
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    refused = invoke("doctor", "--engine", "wave", "--device", "cuda")
    assert isinstance(refused.exception, EngineError)
    assert str(refused.exception).count("\n") == 0
    assert "no device 'cuda' here. PyTorch sees: cpu" in str(refused.exception)
    assert isinstance(invoke("doctor", "--engine", "magic").exception, EngineError)


def test_the_command_alone_is_on_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    see(monkeypatch)
    done = invoke("serve-command", "qwen3-32b-vllm", "--memory", "24")
    assert done.exit_code == 0
    [line] = done.stdout.splitlines()
    assert line.startswith("vllm serve Qwen/Qwen3-32B ")
    assert "--tensor-parallel-size 4" in line
    assert "neither this command nor the model was run by it" in done.stderr
    assert "cradle infer --model qwen3-32b-vllm" in done.stderr
    # The memory that is seen counts where none is named.
    see(monkeypatch, *[Gpu("Imagined", 24 * GIGABYTE, 24 * GIGABYTE)] * 4)
    words = json.loads(invoke("serve-command", "qwen3-32b-vllm", "--json").stdout)["serve"]
    assert words[words.index("--tensor-parallel-size") + 1] == "4"
    assert isinstance(invoke("serve-command", "keyword").exception, RegistryError)
