"""Throughput of the API engines, with a loopback service whose latency is 200 ms.

The service is a separate process and parses only the length of a request, so that the client is
measured; it reports a token for every four bytes. The best possible throughput is not concurrency /
latency, but that of the ideal schedule: after the calls that test the service, dialogues start in
order, the turns of a dialogue run in sequence, and fewer dialogues than the concurrency limit are
left at the end.

A call takes about 0.8 ms of processor time with an official SDK. 64 concurrent calls of 200 ms are
320 calls per second, a quarter of what one process can do; of 1 s, they are 64 per second.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benchmarks.memory import peak_memory
from benchmarks.results import Row, save
from benchmarks.size import sized

LATENCY = sized(0.2, 0.01)
CONCURRENCY = 64
# Calls that a client makes after its first answer, to test whether the service cuts prompts.
TESTS = 3
PROCESSES = sized((1, 2), (1,))
# A client asks about one dialogue of so many in its shard.
ONE_OF = sized(1, 200)
TARGET = 0.85
MEMORY = 300
SDKS = {"openai": "OpenAI's SDK", "anthropic": "Anthropic's SDK"}
CHAT = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "none"}}
    ],
    "usage": {"prompt_tokens": "number", "completion_tokens": 2},
}
MESSAGE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "none"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": "number", "output_tokens": 2},
}


def ideal(lengths: Sequence[int], concurrency: int = CONCURRENCY) -> float:
    """Computes the ideal schedule, in which a dialogue starts when an earlier one ends.

    Args:
        lengths: User turns of each dialogue, in order.
        concurrency: Number of concurrent dialogues.

    Returns:
        Seconds until the last dialogue ends, if only the service took time. At least the
        time of all turns divided by the concurrency, and of the longest dialogue.
    """
    ends = [0.0] * concurrency
    for length in lengths:
        heapq.heapreplace(ends, ends[0] + length * LATENCY)
    return TESTS * LATENCY + max(ends)


def _reply(body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}"
    return head.encode() + b"\r\n\r\n" + data


class _Service(asyncio.Protocol):
    replies = (_reply(CHAT), _reply(MESSAGE))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._seen, self._need = transport, 0, 0
        self._head = b""

    def data_received(self, data: bytes) -> None:
        self._seen += len(data)
        if not self._need:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            if self._head.startswith(b"GET "):
                # This service has no list of models.
                self._transport.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                self._seen, self._head = 0, b""
                return
            place = self._head.lower().index(b"content-length:") + len(b"content-length:")
            self._need = end + 4 + int(self._head[place:].split(b"\r\n", 1)[0])
        if self._seen >= self._need:
            # As many characters as the text that is replaced.
            count = b"%8d" % (self._need // 4)
            reply = self.replies[b"/messages" in self._head[:80]].replace(b'"number"', count)
            asyncio.get_running_loop().call_later(LATENCY, self._transport.write, reply)
            self._seen, self._need, self._head = 0, 0, b""


async def serve() -> None:
    """Serves on a free port until standard input closes; prints the port, then processor time."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Service, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    print(process_time(), flush=True)


def ask(engine: str, port: int, shard: str, concurrency: int) -> None:
    """Runs one client on the surrogate's test split; prints seconds, processor time and memory.

    Waits for a line on standard input before the first question, so that several processes
    start together. The journal is written as in every run.
    """
    from cradle_lib.corpus import load_corpus
    from cradle_lib.detection import Model, Options, Progress
    from cradle_lib.detection.runs.run import run

    corpus = load_corpus("surrogate", "test")
    path = "/v1" if engine == "openai" else ""
    model = Model.model_validate(
        {
            "id": "loopback",
            "name": "Loopback",
            "group": "open",
            "engine": engine,
            "weights": "m",
            "decoding": {"max_new_tokens": 48, "temperature": 0.0},
            "base_url": f"http://127.0.0.1:{port}{path}",
        }
    )
    began: list[float] = []

    def watch(progress: Progress) -> None:
        if not began:
            print("ready", flush=True)
            sys.stdin.readline()
            began.extend((perf_counter(), process_time()))

    with tempfile.TemporaryDirectory() as folder:
        options = Options(concurrency=concurrency, progress=watch)
        run(model, corpus, out=Path(folder), shard=shard, options=options)
    wall, cpu = perf_counter() - began[0], process_time() - began[1]
    print(wall, cpu, peak_memory(), flush=True)


@dataclass(frozen=True)
class Measured:
    """Time and memory of a run.

    Attributes:
        wall: Seconds from the first question until the last client finishes.
        client: Processor seconds of all clients together.
        server: Processor seconds of the service.
        peak: Memory in MB of the largest client.
    """

    wall: float
    client: float
    server: float
    peak: float


def read_line(process: subprocess.Popen[str]) -> str:
    """Waits for the next line that a process prints."""
    assert process.stdout
    return process.stdout.readline()


def measure(engine: str, processes: int) -> Measured:
    """Runs clients, each with a shard of the corpus and a share of the concurrency."""
    with ExitStack() as stack:

        def start(*arguments: object) -> subprocess.Popen[str]:
            command = [sys.executable, "-m", "benchmarks.bench_remote", *map(str, arguments)]
            pipe = subprocess.PIPE
            opened = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
            return stack.enter_context(opened)

        server = start("--serve")
        port = int(read_line(server))
        clients = [
            start("--ask", engine, port, f"{i}/{processes * ONE_OF}", CONCURRENCY // processes)
            for i in range(processes)
        ]
        for client in clients:
            read_line(client)
        for client in clients:
            assert client.stdin
            client.stdin.write("go\n")
            client.stdin.flush()
        found = [[float(number) for number in read_line(client).split()] for client in clients]
        assert server.stdin
        server.stdin.close()
        served = float(read_line(server))
    wall, cpu, peak = zip(*found, strict=True)
    return Measured(max(wall), sum(cpu), served, max(peak))


def bench(engine: str, processes: int) -> list[Row]:
    """Compares the throughput with the ideal schedule and with the limit set by the processors.

    A client uses one core; all clients and the service share the machine's cores.
    """
    from cradle_lib.corpus import load_corpus

    dialogues = load_corpus("surrogate", "test").dialogues
    asked = [d for at, d in enumerate(dialogues) if at % (processes * ONE_OF) < processes]
    lengths = [len(dialogue.user_turns) for dialogue in asked]
    turns, best = sum(lengths), ideal(lengths)
    took = measure(engine, processes)
    cores = os.cpu_count() or 1
    allowed = turns / max(took.client / processes, (took.client + took.server) / cores)
    how = f"{SDKS[engine]} in {processes} process{'es' if processes > 1 else ''}"
    pace, peak = turns / took.wall, took.peak
    spent = 1000 * took.client / turns
    note = (
        f"{turns:,} turns, {CONCURRENCY} concurrent calls; the schedule makes {turns / best:,.0f} "
        f"per second; {spent:.2f} ms of processor time per turn allow {allowed:,.0f} per second"
    )
    size = "peak memory of a process"
    return [
        Row(f"the ideal schedule, {how}", best / took.wall, TARGET, pace, peak, note=note),
        Row(f"{MEMORY} MB, {how}", MEMORY / peak, 1.0, pace, peak, note=size),
    ]


def main() -> bool:
    """Measures, prints a table, and saves it.

    Returns:
        Whether all targets were met.
    """
    load = os.getloadavg()[0]
    rows = [row for engine in SDKS for number in PROCESSES for row in bench(engine, number)]
    return save("services", rows, load)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--serve"]:
            asyncio.run(serve())
        case ["--ask", engine, port, shard, concurrency]:
            ask(engine, int(port), shard, int(concurrency))
        case _:
            sys.exit(0 if main() else 1)
