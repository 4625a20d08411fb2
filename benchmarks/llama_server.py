"""The embedded model behind a llama.cpp server on this machine, from the package ``xllamacpp``.

It understands Chat Completions and Messages and reports cached tokens, so that both API engines can
be tried without a provider. llama.cpp computes with the quantized weights and rounds activations,
so that its probabilities deviate slightly from those of the expanded weights. Token ids and chat
template are equal.

``python -m benchmarks.llama_server`` serves it for the models ``smollm2-135m-openai`` and
``smollm2-135m-anthropic``, until it is interrupted.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Final

from cradle_lib import paths
from cradle_lib.detection.local.embedded import gguf_file
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

    One slot by default, because the place where a prompt is cut between cached and new tokens
    changes the rounding, and with it an answer now and then: one dialogue after the other is the
    same every time. One thread, because two that wait for each other on a busy machine are many
    times slower.

    Args:
        port: The port; 0 for any free one.
        cache: Whether to keep prompts for the next one.
        key: API key that requests need.
        slots: How many requests are answered at the same time.
        threads: How many threads compute.

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
    # Prompts are kept in the slot only; the further cache would take gigabytes.
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
        # The server stops when its last reference goes.
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
