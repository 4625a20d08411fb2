"""An OpenAI-compatible server on loopback: answers follow from prompts, and can be held back."""

from __future__ import annotations

import json
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

ANSWERS = ("none", "none", "alert_ongoing", "confirm_SH_past; alert_ongoing")
MODEL = "m"


class GatedServer:
    """Answers, and holds the further questions of a client until it is opened.

    Args:
        free: Answers that each client gets before; ``None`` to hold nothing.
    """

    def __init__(self, free: int | None = None) -> None:
        self._free, self._held = free, 0
        self._changed = threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            # A connection has a handler of its own, and a client that asks one question at a time
            # has one connection.
            asked = 0

            def do_GET(self) -> None:
                self._send({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self.asked += 1
                outer._pass(self.asked)
                text = body["messages"][-1]["content"]
                answer = ANSWERS[zlib.crc32(text.encode()) % len(ANSWERS)]
                choice = {"index": 0, "finish_reason": "stop"}
                choice["message"] = {"role": "assistant", "content": answer}
                usage = {"prompt_tokens": len(text), "completion_tokens": 2}
                usage["total_tokens"] = len(text) + 2
                self._send({"id": "c", "model": MODEL, "choices": [choice], "usage": usage})

            def _send(self, content: dict[str, Any]) -> None:
                data = json.dumps(content).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def _pass(self, asked: int) -> None:
        with self._changed:
            if self._free is not None and asked > self._free:
                self._held += 1
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._free is None)

    def wait_for(self, held: int) -> bool:
        """Waits until so many questions have been held back; whether they have."""
        with self._changed:
            return self._changed.wait_for(lambda: self._held >= held, 150)

    def open(self) -> None:
        """Opens the gate for good."""
        with self._changed:
            self._free = None
            self._changed.notify_all()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.open()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
