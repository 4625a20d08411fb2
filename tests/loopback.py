"""Base classes of the tests' HTTP servers on the loopback interface."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

# The start of the texts by which a run tests whether a server cuts prompts.
_TEST_TEXT = re.compile(r"[0-9a-f]{8} ")


def is_question(prompt: str) -> bool:
    """Whether a prompt is a question about a turn, and not a text that tests the server."""
    return _TEST_TEXT.match(prompt) is None


class Handler(BaseHTTPRequestHandler):
    """A request handler with persistent connections and without log messages."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def body(self) -> bytes:
        """Reads the body of the request."""
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def send(
        self, content: bytes, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in ({"content-length": str(len(content))} | dict(headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def send_json(self, content: Any, status: int = 200) -> None:
        self.send(json.dumps(content).encode(), status, {"content-type": "application/json"})

    def log_message(self, *_: object) -> None:
        """Suppresses the log."""


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: object) -> None:
        """Ignores connections that clients close early."""


class Loopback:
    """A context manager that runs a server in a thread.

    Args:
        handler: The class of the request handler.
    """

    def __init__(self, handler: type[BaseHTTPRequestHandler] | partial[Any]) -> None:
        self._server = _Quiet(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self.place = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self.place}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
