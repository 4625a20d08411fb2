"""Attention of a wave, compiled on the machine that runs it.

On a processor this is what the wave engine spends most time on beside matrix products. The source
lies beside this file in C; GCC (``gcc``, or what the variable ``CC`` says) fits it to the processor
and the model's head size in about half a second. Without GCC or AVX-512, on a GPU, and in other
number formats, ``plain_attention`` does the same with PyTorch's kernels.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

SOURCE: Final = Path(__file__).with_name("wave_attention.c")
# Nothing that changes the order of sums.
OPTIONS: Final = (
    *("-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno"),
    *("-fopenmp", "-shared", "-fPIC"),
)
# Numbers of a vector: head sizes are multiples of it.
LANES: Final = 16

#: A result, shape (key heads, query heads of each, tokens, size), and the log-sum-exp of its
#: scores, without the last dimension; in any order in memory but for the last dimension.
Found = tuple[Tensor, Tensor]


class _Strided(ctypes.Structure):
    """The struct of that name in the source."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("head", ctypes.c_int64),
        ("sharer", ctypes.c_int64),
        ("token", ctypes.c_int64),
    )


_POINTER: Final = ctypes.c_void_p
_WHOLE: Final = ctypes.c_int64
_STRIDED: Final = ctypes.POINTER(_Strided)
_SIGNATURES: Final[dict[str, tuple[Any, Sequence[Any]]]] = {
    "turn_prefix": (None, (_POINTER, _WHOLE, _WHOLE, _POINTER)),
    "prefix_attention": (
        ctypes.c_int,
        (
            *(_STRIDED, _POINTER, _POINTER, _WHOLE, _STRIDED, _STRIDED),
            *(_WHOLE, _WHOLE, _WHOLE, ctypes.c_float, ctypes.c_int),
        ),
    ),
    "own_attention": (
        ctypes.c_int,
        (
            *(_STRIDED, _POINTER, _POINTER, _WHOLE, _STRIDED, _STRIDED),
            *(_POINTER, _WHOLE, _WHOLE, _WHOLE, _WHOLE, ctypes.c_float),
            *(_STRIDED, _STRIDED, ctypes.c_int),
        ),
    ),
}


class Compiled:
    """The kernels for one head size.

    Queries have shape (key heads, query heads of each, tokens, size). They, and results, may lie in
    any order in memory but for the last dimension, which has no gaps. All numbers are float32, on
    the processor.

    Args:
        library: The compiled source.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        self._library: Any = library

    def turn(self, keys: Tensor) -> Tensor:
        """Lays out the keys of a prefix as :meth:`prefix` reads them.

        Args:
            keys: Shape (key heads, keys, size).

        Returns:
            The keys, sixteen at a time and filled up with zeros. Shape (key heads, blocks, size,
            16).
        """
        keys = keys.contiguous()
        few, count, size = keys.shape
        turned = keys.new_empty(few, -(-count // LANES), size, LANES)
        self._library.turn_prefix(keys.data_ptr(), few, count, turned.data_ptr())
        return turned

    def prefix(self, query: Tensor, turned: Tensor, values: Tensor, scale: float) -> Found:
        """Lets all queries attend to all of the prefix.

        Args:
            query: The queries.
            turned: What :meth:`turn` made of the keys.
            values: Shape (key heads, keys, size).
            scale: Factor of the scores.

        Returns:
            What they found.

        Raises:
            MemoryError: If there is no room for the scores of six queries.
        """
        few, sharers, tokens, _ = query.shape
        values = values.contiguous()
        found = _empty(query)
        _check(
            self._library.prefix_attention(
                *(_strided(query), turned.data_ptr(), values.data_ptr(), values.shape[1]),
                *map(_strided, found),
                *(tokens, few, sharers, scale, torch.get_num_threads()),
            )
        )
        return found

    def own(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        work: Tensor,
        scale: float,
        window: int | None,
        prefix: Found | None,
    ) -> Found:
        """Lets each dialogue's queries attend to its own tokens.

        Args:
            query: The queries.
            keys: All slots' keys, contiguous. Shape (slots, key heads, capacity, size).
            values: Their values, contiguous. The same shape.
            work: What there is to do: see ``Pack.work``.
            scale: Factor of the scores.
            window: How many tokens one sees at most, itself included; ``None`` for all.
            prefix: What the queries found in the prefix, to be joined.

        Returns:
            Own tokens and prefix together.

        Raises:
            MemoryError: If there is no room for one dialogue's keys a second time.
        """
        assert all(tensor.is_contiguous() for tensor in (keys, values, work))
        few, sharers = query.shape[:2]
        found = _empty(query)
        _check(
            self._library.own_attention(
                *(_strided(query), keys.data_ptr(), values.data_ptr(), keys.shape[2]),
                *map(_strided, found),
                *(work.data_ptr(), len(work), few, sharers, window or 0, scale),
                *map(_strided, prefix or (None, None)),
                torch.get_num_threads(),
            )
        )
        return found


def compiled(query: Tensor, keys: Tensor, values: Tensor) -> Compiled | None:
    """Finds the kernels for some tensors, and compiles them if need be.

    Args:
        query: Queries. Shape (..., size).
        keys: Keys. Shape (..., size).
        values: Values. Shape (..., value size).

    Returns:
        The kernels; ``None`` where they can't be compiled, or not for such tensors.
    """
    size = query.shape[-1]
    fits = query.device.type == "cpu" and size % LANES == 0 and values.shape[-1] == size
    if not fits or any(t.dtype != torch.float32 for t in (query, keys, values)):
        return None
    return _for_size(size)


@cache
def _for_size(size: int) -> Compiled | None:
    try:
        compiler = shlex.split(os.environ.get("CC") or "gcc")
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            made = Path(folder) / "wave_attention.so"
            command = [*compiler, *OPTIONS, f"-DSIZE={size}", str(SOURCE), "-o", str(made), "-lm"]
            subprocess.run(command, capture_output=True, check=True, timeout=120)
            # A library stays loaded when its file is gone.
            return Compiled(ctypes.CDLL(str(made)))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _empty(query: Tensor) -> Found:
    """Room for a result, token after token in memory."""
    few, sharers, tokens, size = query.shape
    out = query.new_empty(tokens, few, sharers, size).permute(1, 2, 0, 3)
    return out, query.new_empty(tokens, few, sharers).permute(1, 2, 0)


def _strided(tensor: Tensor | None) -> Any:
    there = () if tensor is None else (tensor.data_ptr(), *tensor.stride()[:3])
    return ctypes.byref(_Strided(*there))


def _check(failed: int) -> None:
    if failed:
        raise MemoryError("no room for the scores of a dialogue")
