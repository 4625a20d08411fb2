"""The embedded model behind a real server on this machine: llama.cpp's own, from ``xllamacpp``.

It speaks Chat Completions and Messages, keeps prompts in a cache and says how much of each
it found there. So both API engines can be tried, and their whole way tested, without a
provider. Unlike the local engines it computes with the quantized weights as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cradle_lib import paths
from cradle_lib.detection.local.weights import gguf_file
from cradle_lib.errors import EngineError

HOST: Final = "127.0.0.1"
PORT: Final = 8131
NAME: Final = "smollm2-135m"
# The context that SmolLM2 was trained for; the longest prompts here need about half of it.
_CONTEXT: Final = 8192


@contextmanager
def serving(
    port: int = PORT,
    *,
    cache: bool = True,
    key: str | None = None,
    slots: int = 1,
    threads: int = 1,
) -> Iterator[str]:
    """Serves the embedded model on the loopback interface.

    One slot, unless told otherwise, because where a prompt is cut between cached and new tokens
    changes the rounding, and with it an answer now and then: one dialogue after the other is the
    same every time. One thread, because two that wait for each other on a busy machine are many
    times slower. Port 0 is any free one; ``cache`` keeps prompts for the next one.

    Yields:
        The address, such as ``http://127.0.0.1:8131``.

    Raises:
        EngineError: If ``xllamacpp`` is not installed, the weights can't be had, or the port is
            taken.
    """
    try:
        import xllamacpp
    except ImportError:
        raise EngineError(
            "no server: package xllamacpp is missing. Install it with "
            f"`{paths.install_command('dev')}`."
        ) from None
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(gguf_file())
    parameters.model_alias = {NAME}
    parameters.hostnames = [HOST]
    parameters.port = port
    parameters.api_keys = [key] if key else []
    parameters.n_ctx = slots * _CONTEXT
    parameters.n_parallel = slots
    parameters.cpuparams.n_threads = threads
    parameters.cpuparams_batch.n_threads = threads
    parameters.cache_prompt = cache
    # Prompts are kept in the slot only; the further cache would take gigabytes.
    parameters.cache_ram_mib = 0
    parameters.ui = False
    parameters.verbosity = -1
    try:
        server = xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise EngineError(f"{HOST}:{port}: the server did not start ({error})") from None
    try:
        yield server.listening_address
    finally:
        # The server stops when nobody holds it.
        del server
