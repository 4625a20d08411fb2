"""Serves the embedded model on this machine with llama.cpp, from the package ``xllamacpp``.

The server implements Chat Completions and Messages and reports cached tokens, so that both API
engines can be tested without a provider. llama.cpp computes with the quantized weights and rounds
activations, so that its probabilities deviate slightly from those of the expanded weights. Token
ids and chat template are equal.

``python -m benchmarks.llama_server`` serves the models ``smollm2-135m-openai`` and
``smollm2-135m-anthropic`` until it is interrupted.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Final

from cradle_engines.local.embedded import gguf_file
from cradle_lib import paths
from cradle_lib.errors import EngineError

#: The port in the registry's entries.
PORT: Final = 8131
SERVED_NAME: Final = "smollm2-135m"
_HOST: Final = "127.0.0.1"
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

    The defaults are one slot and one thread. Rounding, and with it a few answers, depends on how
    much of a prompt is cached, so that only one dialogue after the other is reproducible. Two
    threads wait for each other and are many times slower on a busy machine.

    Args:
        port: The port; 0 for any free one.
        cache: Whether to use the prompt cache.
        key: API key that requests must have; ``None`` for no key.
        slots: Number of concurrent requests.
        threads: Number of compute threads.

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
    parameters.model_alias = {SERVED_NAME}
    parameters.hostnames = [_HOST]
    parameters.port = port
    parameters.api_keys = [key] if key else []
    parameters.n_ctx = slots * _CONTEXT
    parameters.n_parallel = slots
    parameters.cpuparams.n_threads = threads
    parameters.cpuparams_batch.n_threads = threads
    parameters.cache_prompt = cache
    # Caches prompts in the slots only; the additional RAM cache would take gigabytes.
    parameters.cache_ram_mib = 0
    parameters.ui = False
    parameters.verbosity = -1
    try:
        server = xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise EngineError(f"{_HOST}:{port}: the server did not start ({error})") from None
    try:
        yield server.listening_address
    finally:
        # The server stops when its last reference is deleted.
        del server


def main() -> None:
    """Serves until it is interrupted or terminated."""
    stopped = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with serving() as address:
        print(f"Serving at {address}. Stop with Ctrl-C.", flush=True)
        stopped.wait()


if __name__ == "__main__":
    main()
