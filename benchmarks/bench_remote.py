"""How fast the API engine asks: against a service on loopback that takes 200 ms for each answer.

The service is a process of its own that reads no more of a request than its length, so that
what is measured is the client. What a client could reach at best is not the number of calls
in flight over the time of one, but the end of a schedule: dialogues are taken in order, each
asks one turn after the other, and at the end fewer dialogues are left than may be asked at once.

With an official SDK a call costs somewhat more than a millisecond of processor; 64 / 200 ms =
320 calls a second take a third of what one process can do. Services that take a second for an
answer ask 64 calls a second of it.
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
from benchmarks.results import Row, keep

LATENCY = 0.2
CONCURRENCY = 64
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
    "usage": {"prompt_tokens": 2000, "completion_tokens": 2, "total_tokens": 2002},
}
MESSAGE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "none"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 2000, "output_tokens": 2},
}


def ideal(lengths: Sequence[int], concurrency: int = CONCURRENCY) -> float:
    """Seconds of the schedule: every dialogue begins as soon as one before it has ended.

    Args:
        lengths: User turns of each dialogue, in order.
        concurrency: Dialogues at once.

    Returns:
        When the last one ends, if nothing but the service took any time. Never less than
        all turns over the concurrency, nor than the longest dialogue.
    """
    ends = [0.0] * concurrency
    for length in lengths:
        heapq.heapreplace(ends, ends[0] + length * LATENCY)
    return max(ends)


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
                # Of its models a service of this kind has no list.
                self._transport.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                self._seen, self._head = 0, b""
                return
            place = self._head.lower().index(b"content-length:") + len(b"content-length:")
            self._need = end + 4 + int(self._head[place:].split(b"\r\n", 1)[0])
        if self._seen >= self._need:
            reply = self.replies[b"/messages" in self._head[:80]]
            asyncio.get_running_loop().call_later(LATENCY, self._transport.write, reply)
            self._seen, self._need, self._head = 0, 0, b""


async def serve() -> None:
    """Serves on a free port until standard input is closed; prints the port, then what it took."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Service, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    print(process_time(), flush=True)


def ask(engine: str, port: int, shard: str, concurrency: int) -> None:
    """Asks about the surrogate's test split, journal included; prints what it took.

    Waits for a line on standard input before the first question, so that several
    processes can begin together.
    """
    from cradle_lib.corpus import load_corpus
    from cradle_lib.detection import Model, Options, Progress
    from cradle_lib.detection.run import run

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
    """What a run took.

    Attributes:
        wall: Seconds from the first question until the last client ended.
        client: Processor seconds of all clients together.
        server: Processor seconds of the service.
        peak: Memory in MB of the largest client.
    """

    wall: float
    client: float
    server: float
    peak: float


def measure(engine: str, processes: int) -> Measured:
    """Runs clients, each with its shard and its part of the concurrency."""
    with ExitStack() as stack:

        def start(*arguments: object) -> subprocess.Popen[str]:
            command = [sys.executable, "-m", "benchmarks.bench_remote", *map(str, arguments)]
            pipe = subprocess.PIPE
            opened = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
            return stack.enter_context(opened)

        server = start("--serve")
        assert server.stdout
        port = int(server.stdout.readline())
        clients = [
            start("--ask", engine, port, f"{i}/{processes}", CONCURRENCY // processes)
            for i in range(processes)
        ]
        for client in clients:
            assert client.stdout
            client.stdout.readline()
        for client in clients:
            assert client.stdin
            client.stdin.write("go\n")
            client.stdin.flush()
        found = []
        for client in clients:
            assert client.stdout
            found.append([float(number) for number in client.stdout.readline().split()])
        assert server.stdin
        server.stdin.close()
        served = float(server.stdout.readline())
    wall, cpu, peak = zip(*found, strict=True)
    return Measured(max(wall), sum(cpu), served, max(peak))


def bench(engine: str, processes: int) -> list[Row]:
    """Compares what was measured with the schedule, and with what the processors allow.

    A client has one processor, and all clients share the machine's with the service.
    """
    from cradle_lib.corpus import load_corpus

    lengths = [len(dialogue.user_turns) for dialogue in load_corpus("surrogate", "test")]
    turns, best = sum(lengths), ideal(lengths)
    took = measure(engine, processes)
    cores = os.cpu_count() or 1
    allowed = turns / max(took.client / processes, (took.client + took.server) / cores)
    how = f"{SDKS[engine]} in {processes} process{'es' if processes > 1 else ''}"
    pace, peak = turns / took.wall, took.peak
    spent = 1000 * took.client / turns
    cost = f"{spent:.2f} ms of processor time per turn allow {allowed:,.0f} per second"
    calls = f"{turns:,} turns, {CONCURRENCY} concurrent calls"
    ratio = f"{calls}; the schedule makes {turns / best:,.0f} per second"
    return [
        Row(
            f"the ideal schedule, {how}",
            best / took.wall,
            TARGET,
            pace,
            peak,
            None,
            f"{ratio}; {cost}",
        ),
        Row(
            f"{MEMORY} MB, {how}", MEMORY / peak, 1.0, pace, peak, None, "peak memory of a process"
        ),
    ]


def main() -> bool:
    """Runs everything, prints one table, and keeps it.

    Returns:
        Whether all targets were met.
    """
    load = os.getloadavg()[0]
    rows = [row for engine in SDKS for processes in (1, 2) for row in bench(engine, processes)]
    return keep("services", rows, load)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--serve"]:
            asyncio.run(serve())
        case ["--ask", engine, port, shard, concurrency]:
            ask(engine, int(port), shard, int(concurrency))
        case _:
            sys.exit(0 if main() else 1)
